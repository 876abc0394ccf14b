//! The text format of Prometheus, made when somebody asks for it.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use toolwarden_core::name::shown;
use toolwarden_core::{Decision, Reason};

use crate::Telemetry;
use crate::histogram::Histogram;
use crate::metrics::{ServerMetrics, TurnedAway};
use crate::observed::{Observed, STATES};
use crate::trace::{SpanCounts, Tracer};

/// The whole page.
#[must_use]
pub fn render(telemetry: &Telemetry, observed: &Observed) -> String {
    let mut page = Page(String::with_capacity(16 * 1024));
    page.calls(telemetry);
    page.gateway(telemetry, observed);
    page.policy(telemetry, observed);
    page.classifier(telemetry, observed);
    page.journal(observed);
    page.traces(telemetry);
    page.process(telemetry, observed);
    page.0
}

/// The kind of a metric.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let _ = writeln!(self.0, "# HELP toolwarden_{name} {help}\n# TYPE toolwarden_{name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let _ = write!(self.0, "toolwarden_{name}");
        for (place, (label, text)) in labels.iter().enumerate() {
            let opening = if place == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{opening}{label}=\"{}\"", quoted(text));
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// A metric of one value.
    fn single(&mut self, name: &str, kind: Kind, help: &str, value: impl std::fmt::Display) {
        self.head(name, kind, help);
        self.line(name, &[], value);
    }

    /// A metric with one value for each server.
    fn by_server<V: std::fmt::Display>(
        &mut self,
        telemetry: &Telemetry,
        (name, kind, help): (&str, Kind, &str),
        value: impl Fn(&ServerMetrics) -> V,
    ) {
        self.head(name, kind, help);
        for server in &*telemetry.metrics.servers() {
            self.line(name, &[("server", &server.name)], value(server));
        }
    }

    fn histograms(&mut self, telemetry: &Telemetry, (name, help): (&str, &str), of: fn(&ServerMetrics) -> &Histogram) {
        self.head(name, Kind::Histogram, help);
        for server in &*telemetry.metrics.servers() {
            let histogram = of(server);
            let (below, all) = histogram.cumulated();
            let bucket = format!("{name}_bucket");
            for (bound, count) in below {
                let bound = std::time::Duration::from_micros(bound).as_secs_f64().to_string();
                self.line(&bucket, &[("server", &server.name), ("le", &bound)], count);
            }
            self.line(&bucket, &[("server", &server.name), ("le", "+Inf")], all);
            self.line(&format!("{name}_sum"), &[("server", &server.name)], histogram.seconds());
            self.line(&format!("{name}_count"), &[("server", &server.name)], all);
        }
    }

    fn calls(&mut self, telemetry: &Telemetry) {
        let metrics = &telemetry.metrics;
        let name = "calls_total";
        self.head(name, Kind::Counter, "Calls that ended, as they are recorded; without server those that named none.");
        for server in metrics.servers().iter().chain([&metrics.elsewhere]) {
            for (door, decision, status, count) in server.calls() {
                let labels = [("server", &*server.name), ("door", door), ("decision", decision), ("status", status)];
                self.line(name, &labels, count);
            }
        }
        let name = "refusals_total";
        self.head(name, Kind::Counter, "Calls that were held or denied, by reason.");
        for reason in Reason::ALL.iter().filter(|reason| reason.decision() != Decision::Allow) {
            let labels = [("decision", reason.decision().as_str()), ("reason", reason.code())];
            self.line(name, &labels, metrics.refusals(*reason));
        }
        let about = ("calls_in_flight", Kind::Gauge, "Calls that left for a server and have not ended.");
        self.by_server(telemetry, about, |server| server.in_flight.load(Ordering::Relaxed));
        let about = ("call_duration_seconds", "From the arrival of a call to its end, where it left for a server.");
        self.histograms(telemetry, about, |server| &server.whole);
        let help =
            "From the arrival of a call to its departure: judging and recording, and waiting for the server to start.";
        self.histograms(telemetry, ("call_admission_seconds", help), |server| &server.admission);
        let about = ("request_bytes_total", Kind::Counter, "Bytes of calls that left for a server.");
        self.by_server(telemetry, about, |server| server.request_bytes.load(Ordering::Relaxed));
        let about = ("response_bytes_total", Kind::Counter, "Bytes of answers to calls.");
        self.by_server(telemetry, about, |server| server.response_bytes.load(Ordering::Relaxed));
    }

    fn gateway(&mut self, telemetry: &Telemetry, observed: &Observed) {
        let name = "messages_turned_away_total";
        self.head(name, Kind::Counter, "Messages that ended before they could be judged; they are not recorded.");
        for (why, count) in TurnedAway::ALL.iter().zip(&telemetry.metrics.turned_away) {
            self.line(name, &[("why", why.as_str())], count.load(Ordering::Relaxed));
        }
        self.single("sessions", Kind::Gauge, "Sessions of clients that are open.", observed.sessions);
        let name = "server_state";
        self.head(name, Kind::Gauge, "1 for the state a server is in, 0 for the others.");
        for server in &observed.servers {
            for state in STATES {
                let labels = [("server", &*server.name), ("state", state)];
                self.line(name, &labels, u8::from(server.state == state));
            }
        }
        let name = "server_lines";
        self.head(name, Kind::Gauge, "Processes, and streams of the oldest HTTP transport, that run for a server.");
        for server in &observed.servers {
            self.line(name, &[("server", &server.name)], server.lines);
        }
    }

    fn policy(&mut self, telemetry: &Telemetry, observed: &Observed) {
        let reloads = &telemetry.reloads;
        let help = "Version of the policy in force, as records name it.";
        self.single("policy_version", Kind::Gauge, help, observed.policy_version);
        let name = "policy_reloads_total";
        self.head(name, Kind::Counter, "Policies that were read again since the start, and what came of it.");
        self.line(name, &[("result", "taken")], reloads.taken.load(Ordering::Relaxed));
        self.line(name, &[("result", "refused")], reloads.refused.load(Ordering::Relaxed));
        let help = "Whether the policy in force is the one that was read last: 0 while its files cannot be used.";
        self.single("policy_is_current", Kind::Gauge, help, u8::from(reloads.refusal().is_none()));
        let (name, at) = ("policy_last_taken_timestamp_seconds", reloads.taken_at.load(Ordering::Relaxed));
        self.single(name, Kind::Gauge, "When the policy in force was read.", at);
        let (name, at) = ("policy_last_refused_timestamp_seconds", reloads.refused_at.load(Ordering::Relaxed));
        self.single(name, Kind::Gauge, "When a policy was last refused; 0 where none was.", at);
    }

    fn classifier(&mut self, telemetry: &Telemetry, observed: &Observed) {
        let classifier = &telemetry.metrics.classifier;
        let name = "classifier_verdicts_total";
        self.head(
            name,
            Kind::Counter,
            "What the classifier said of held calls; `none` where it said nothing that counts.",
        );
        for (verdict, source, count) in classifier.verdicts() {
            self.line(name, &[("verdict", verdict), ("source", source)], count);
        }
        let name = "classifier_failures_total";
        self.head(name, Kind::Counter, "Questions to the classifier that were not asked or not answered, by why.");
        for (why, count) in classifier.failures() {
            self.line(name, &[("why", why)], count);
        }
        let name = "classifier_agreement_total";
        let help =
            "What persons answered where the classifier had a verdict; of the whole store, at each of its gateways.";
        self.head(name, Kind::Counter, help);
        for (verdict, answer, count) in observed.agreement.cases() {
            self.line(name, &[("verdict", verdict), ("answer", answer)], count);
        }
    }

    fn journal(&mut self, observed: &Observed) {
        let journal = &observed.journal;
        self.single("journal_records_total", Kind::Counter, "Records written to the journal.", journal.written);
        let help = "Records that could not be written; a call whose record is among them did not run.";
        self.single("journal_failures_total", Kind::Counter, help, journal.failed);
        let help = "Whether the last record could be written.";
        self.single("journal_writable", Kind::Gauge, help, u8::from(journal.is_writable));
        self.head("journal_undelivered_records", Kind::Gauge, "Records of this process that are not in the index yet.");
        if let Some(behind) = journal.behind {
            self.line("journal_undelivered_records", &[], behind);
        }
    }

    fn traces(&mut self, telemetry: &Telemetry) {
        let name = "spans_total";
        self.head(name, Kind::Counter, "Spans of calls: sent, dropped because too many waited, or not taken.");
        let counts = telemetry.tracer.as_ref().map(Tracer::counts);
        let count = |of: fn(&SpanCounts) -> &AtomicU64| counts.map_or(0, |counts| of(counts).load(Ordering::Relaxed));
        self.line(name, &[("result", "sent")], count(|counts| &counts.sent));
        self.line(name, &[("result", "dropped")], count(|counts| &counts.dropped));
        self.line(name, &[("result", "failed")], count(|counts| &counts.failed));
    }

    fn process(&mut self, telemetry: &Telemetry, observed: &Observed) {
        let process = observed.process;
        let started = telemetry.started.as_second();
        self.single("start_time_seconds", Kind::Gauge, "When the gateway started.", started);
        self.head("resident_memory_bytes", Kind::Gauge, "Memory of the gateway, without its servers' processes.");
        if let Some(bytes) = process.resident_bytes {
            self.line("resident_memory_bytes", &[], bytes);
        }
        self.head("open_files", Kind::Gauge, "Open files, connections among them.");
        if let Some(files) = process.open_files {
            self.line("open_files", &[], files);
        }
        self.head("build_info", Kind::Gauge, "Always 1; the version is in the label.");
        self.line("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    }
}

/// A label's value: names of servers may hold anything.
fn quoted(text: &str) -> String {
    shown(text).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
