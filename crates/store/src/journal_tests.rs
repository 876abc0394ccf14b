//! The journal on a disk that fails: at every byte, while cutting back, syncing or making segments.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use toolwarden_core::{AuditRecord, Clock, RecordKind, Status};
use toolwarden_vault::FileKeyring;

use super::disk::{Disk, RealDisk};
use super::{Journal, JournalError, JournalOptions, SyncLevel, verify};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A disk with room for so many bytes, whose other steps can be made to fail.
#[derive(Debug)]
struct FailingDisk {
    room: AtomicI64,
    no_truncate: AtomicBool,
    no_sync: AtomicBool,
    no_create: AtomicBool,
    syncs: AtomicU64,
    appends: AtomicU64,
}

impl Disk for FailingDisk {
    fn create(&self, path: &Path) -> io::Result<File> {
        if self.no_create.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        RealDisk.create(path)
    }

    fn append(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        self.appends.fetch_add(1, Ordering::SeqCst);
        let room = usize::try_from(self.room.load(Ordering::SeqCst)).unwrap_or_default();
        let fits = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        if fits.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let written = RealDisk.append(file, fits)?;
        self.room.fetch_sub(i64::try_from(written).unwrap_or_default(), Ordering::SeqCst);
        Ok(written)
    }

    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        if self.no_truncate.load(Ordering::SeqCst) {
            return Err(io::Error::from_raw_os_error(5));
        }
        RealDisk.truncate(file, length)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        if self.no_sync.load(Ordering::SeqCst) {
            return Err(io::Error::from_raw_os_error(5));
        }
        RealDisk.sync(file)
    }
}

/// A clock that stands still: nothing is signed for its age.
#[derive(Debug)]
struct StillClock;

impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// A clock that runs away: whatever is due by time is due at once.
#[derive(Debug, Default)]
struct FastClock(AtomicI64);

impl Clock for FastClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.fetch_add(60, Ordering::SeqCst)).unwrap_or_default()
    }
}

struct Place {
    _root: tempfile::TempDir,
    directory: PathBuf,
    disk: Arc<FailingDisk>,
    keyring: Arc<FileKeyring>,
}

impl Place {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let root = tempfile::tempdir()?;
        let disk = FailingDisk {
            room: AtomicI64::new(i64::MAX),
            no_truncate: AtomicBool::new(false),
            no_sync: AtomicBool::new(false),
            no_create: AtomicBool::new(false),
            syncs: AtomicU64::new(0),
            appends: AtomicU64::new(0),
        };
        let keyring = Arc::new(FileKeyring::open(&root.path().join("config"))?);
        Ok(Self { directory: root.path().join("journal"), disk: Arc::new(disk), keyring, _root: root })
    }

    fn open(&self, change: impl FnOnce(&mut JournalOptions)) -> Result<Journal, JournalError> {
        self.open_at(Arc::new(StillClock), change)
    }

    fn open_at(
        &self,
        clock: Arc<dyn Clock>,
        change: impl FnOnce(&mut JournalOptions),
    ) -> Result<Journal, JournalError> {
        let mut options = JournalOptions::new(self.directory.clone(), "test");
        change(&mut options);
        let disk = Arc::clone(&self.disk);
        let keyring = Arc::clone(&self.keyring);
        Journal::open_on(&options, keyring, clock, disk).map(|(journal, _)| journal)
    }

    fn text(&self) -> io::Result<String> {
        let mut text = String::new();
        for number in super::segments::segment_numbers(&self.directory.join("test-1"))? {
            text.push_str(&fs::read_to_string(super::segment_path(&self.directory.join("test-1"), number))?);
        }
        Ok(text)
    }

    fn problem(&self) -> Result<Option<super::Problem>, JournalError> {
        let report = verify(&self.directory, self.keyring.as_ref(), &[])?;
        Ok(report.nodes.into_iter().find_map(|node| node.problem))
    }
}

fn intent(call: u64) -> AuditRecord<'static> {
    AuditRecord::new(RecordKind::Intent, Timestamp::UNIX_EPOCH, call)
}

fn outcome(call: u64) -> AuditRecord<'static> {
    let mut record = AuditRecord::new(RecordKind::Outcome, Timestamp::UNIX_EPOCH, call);
    record.status = Some(Status::Ok);
    record
}

#[tokio::test]
async fn gate_15_a_record_that_does_not_fit_is_refused_whole_at_every_byte() -> Outcome {
    let place = Place::new()?;
    let journal = place.open(|_| ())?;
    let mut taken = Vec::new();
    for room in 0..400 {
        place.disk.room.store(room, Ordering::SeqCst);
        let call = journal.next_call();
        if journal.record(&intent(call)).await.is_ok() {
            taken.push(call);
        }
        assert!(place.text()?.ends_with('\n'), "room {room}");
    }
    assert!(!taken.is_empty() && taken.len() < 350, "{}", taken.len());
    place.disk.room.store(i64::MAX, Ordering::SeqCst);
    let call = journal.next_call();
    journal.record(&intent(call)).await?;
    taken.push(call);
    journal.close().await?;
    assert_eq!(place.problem()?, None);
    let text = place.text()?;
    let calls: Vec<u64> = text
        .lines()
        .filter(|line| line.contains("\"kind\":\"intent\""))
        .filter_map(|line| line.split("\"call\":").nth(1)?.split(['}', ',']).next()?.parse().ok())
        .collect();
    assert_eq!(calls, taken, "what was refused is not there, what was taken is there once");
    Ok(())
}

#[tokio::test]
async fn gate_15_what_could_not_be_cut_back_is_cut_before_the_next_record() -> Outcome {
    let place = Place::new()?;
    let journal = place.open(|_| ())?;
    place.disk.room.store(50, Ordering::SeqCst);
    place.disk.no_truncate.store(true, Ordering::SeqCst);
    assert!(journal.record(&intent(1)).await.is_err());
    assert!(!place.text()?.ends_with('\n'), "half a line stands there");
    place.disk.room.store(i64::MAX, Ordering::SeqCst);
    assert!(journal.record(&intent(2)).await.is_err(), "nothing is written behind half a line");
    place.disk.no_truncate.store(false, Ordering::SeqCst);
    journal.record(&intent(3)).await?;
    journal.close().await?;
    assert_eq!(place.problem()?, None);
    let text = place.text()?;
    assert!(!text.contains("\"call\":1}") && !text.contains("\"call\":2}") && text.contains("\"call\":3}"));
    Ok(())
}

#[tokio::test]
async fn outcomes_wait_while_the_disk_is_full_and_are_not_lost() -> Outcome {
    let place = Place::new()?;
    let journal = place.open(|_| ())?;
    journal.record(&intent(1)).await?;
    place.disk.room.store(10, Ordering::SeqCst);
    journal.note(&outcome(1))?;
    assert!(journal.record(&intent(2)).await.is_err());
    assert!(journal.flush().await.is_err());
    place.disk.room.store(i64::MAX, Ordering::SeqCst);
    journal.flush().await?;
    assert_eq!(place.text()?.matches("\"kind\":\"outcome\"").count(), 1);
    journal.close().await?;
    assert_eq!(place.problem()?, None);
    Ok(())
}

#[tokio::test]
async fn gate_15_a_sync_that_fails_refuses_the_call_and_says_so_in_the_journal() -> Outcome {
    let place = Place::new()?;
    let journal = place.open(|options| options.sync = SyncLevel::Always)?;
    journal.record(&intent(1)).await?;
    journal.note(&outcome(1))?;
    place.disk.no_sync.store(true, Ordering::SeqCst);
    assert!(matches!(journal.record(&intent(2)).await, Err(JournalError::Sync(_))));
    place.disk.no_sync.store(false, Ordering::SeqCst);
    journal.record(&intent(3)).await?;
    journal.close().await?;
    assert_eq!(place.problem()?, None);
    let text = place.text()?;
    assert!(text.contains("\"call\":2,\"status\":\"cancelled\""), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_segment_that_cannot_be_made_refuses_records_until_it_can() -> Outcome {
    let place = Place::new()?;
    let journal = place.open(|options| options.segment_bytes = 2000)?;
    place.disk.no_create.store(true, Ordering::SeqCst);
    let mut refused = 0;
    for _ in 0..30 {
        refused += u32::from(journal.record(&intent(journal.next_call())).await.is_err());
    }
    assert!(refused > 0 && refused < 30, "{refused}");
    place.disk.no_create.store(false, Ordering::SeqCst);
    for _ in 0..30 {
        journal.record(&intent(journal.next_call())).await?;
    }
    // Also where the header of a new segment does not fit.
    for room in 0..1500 {
        place.disk.room.store(room, Ordering::SeqCst);
        let _ = journal.record(&intent(journal.next_call())).await;
    }
    place.disk.room.store(i64::MAX, Ordering::SeqCst);
    journal.close().await?;
    assert_eq!(place.problem()?, None);
    Ok(())
}

#[tokio::test]
async fn records_that_come_together_share_a_sync() -> Outcome {
    let place = Place::new()?;
    let journal = place.open(|options| options.sync = SyncLevel::Always)?;
    let before = place.disk.syncs.load(Ordering::SeqCst);
    let tasks: Vec<_> = (1..=200)
        .map(|call| {
            let journal = journal.clone();
            tokio::spawn(async move { journal.record(&intent(call)).await })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    let syncs = place.disk.syncs.load(Ordering::SeqCst) - before;
    assert!((1..150).contains(&syncs), "{syncs} syncs for 200 records");
    Ok(())
}

#[tokio::test]
async fn what_is_due_by_time_is_synced_and_signed_in_the_background() -> Outcome {
    let place = Place::new()?;
    let journal = place.open_at(Arc::new(FastClock::default()), |options| options.sync = SyncLevel::Every100ms)?;
    let before = place.disk.syncs.load(Ordering::SeqCst);
    let receipt = journal.record(&intent(1)).await?;
    for _ in 0..400 {
        let report = verify(&place.directory, place.keyring.as_ref(), &[])?;
        if report.nodes.iter().all(|node| node.signed_through > receipt.sequence) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let report = verify(&place.directory, place.keyring.as_ref(), &[])?;
    assert!(report.nodes.iter().all(|node| node.signed_through > receipt.sequence), "{report:?}");
    assert!(place.disk.syncs.load(Ordering::SeqCst) > before);
    Ok(())
}

/// Runs while somebody holds the chain: what is handed in meanwhile is written when it is let go.
async fn together(journal: &Journal, calls: std::ops::RangeInclusive<u64>, note: u64) -> Vec<bool> {
    let mut writers = Vec::new();
    journal.shared().with_state(|_| {
        for call in calls {
            let handed_in = journal.shared().hand_in(&intent(call));
            journal.shared().serve();
            writers.extend(handed_in);
        }
        // An outcome in between; the records around it share its fate only as far as they must.
        assert!(journal.note(&outcome(note)).is_ok());
    });
    let mut taken = Vec::new();
    for mut writer in writers {
        taken.push(writer.answer().await.is_ok());
        writer.keep();
    }
    taken
}

#[tokio::test]
async fn records_that_come_together_share_one_write() -> Outcome {
    let place = Place::new()?;
    let journal = place.open(|_| ())?;
    journal.record(&intent(1)).await?;
    let before = place.disk.appends.load(Ordering::SeqCst);
    assert_eq!(together(&journal, 2..=9, 1).await, [true; 8]);
    assert_eq!(place.disk.appends.load(Ordering::SeqCst) - before, 1);
    journal.close().await?;
    assert_eq!(place.problem()?, None);
    Ok(())
}

#[tokio::test]
async fn gate_15_a_shared_write_that_fails_refuses_every_record_and_keeps_the_outcome() -> Outcome {
    let place = Place::new()?;
    let journal = place.open(|_| ())?;
    journal.record(&intent(1)).await?;
    // Room for some of the lines, not for all of them.
    place.disk.room.store(500, Ordering::SeqCst);
    assert_eq!(together(&journal, 2..=9, 1).await, [false; 8]);
    place.disk.room.store(i64::MAX, Ordering::SeqCst);
    journal.record(&intent(10)).await?;
    journal.close().await?;
    assert_eq!(place.problem()?, None);
    let text = place.text()?;
    assert!((2..=9).all(|call| !text.contains(&format!("\"call\":{call}}}"))), "{text}");
    assert!(text.contains("\"call\":1,\"status\":\"ok\"") && text.contains("\"call\":10}"), "{text}");
    Ok(())
}

/// Ends a record's future before its answer was taken; the journal must know that the call never left.
async fn abandoned(sync: SyncLevel, is_written: bool) -> Outcome {
    let place = Place::new()?;
    let journal = place.open(|options| options.sync = sync)?;
    let handed_in = journal.shared().hand_in(&intent(1))?;
    if is_written {
        journal.shared().serve();
    }
    drop(handed_in);
    journal.shared().serve();
    journal.close().await?;
    assert_eq!(place.problem()?, None);
    let text = place.text()?;
    assert!(text.contains("\"call\":1,\"status\":\"cancelled\""), "{text}");
    Ok(())
}

#[tokio::test]
async fn an_intent_whose_writer_went_away_is_taken_back() -> Outcome {
    for is_written in [false, true] {
        abandoned(SyncLevel::Os, is_written).await?;
        abandoned(SyncLevel::Always, is_written).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_journal_with_nothing_to_do_is_flushed_at_once() -> Outcome {
    let place = Place::new()?;
    let journal = place.open(|_| ())?;
    for _ in 0..20 {
        tokio::time::timeout(Duration::from_secs(10), journal.flush()).await??;
    }
    Ok(())
}

#[tokio::test]
async fn a_record_nobody_waits_for_any_more_is_written_all_the_same() -> Outcome {
    let place = Place::new()?;
    let journal = place.open(|_| ())?;
    journal.flush().await?;
    drop(journal.shared().hand_in(&intent(1))?);
    for _ in 0..500 {
        if place.text()?.contains("\"call\":1}") {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err("it lies in the inbox".into())
}

#[tokio::test]
async fn gate_15_an_intent_that_was_not_synced_is_taken_back_also_for_those_who_left() -> Outcome {
    let place = Place::new()?;
    let journal = place.open(|options| options.sync = SyncLevel::Always)?;
    place.disk.no_sync.store(true, Ordering::SeqCst);
    // One leaves before the sync fails, one after and without looking.
    let early = journal.shared().hand_in(&intent(1))?;
    journal.shared().serve();
    drop(early);
    let late = journal.shared().hand_in(&intent(2))?;
    journal.shared().serve();
    let _ = tokio::time::timeout(Duration::from_secs(10), journal.flush()).await?;
    drop(late);
    place.disk.no_sync.store(false, Ordering::SeqCst);
    journal.close().await?;
    let text = place.text()?;
    for call in [1, 2] {
        assert!(text.contains(&format!("\"call\":{call},\"status\":\"cancelled\"")), "{text}");
    }
    Ok(())
}

#[tokio::test]
async fn a_journal_says_that_its_disk_is_full_until_it_takes_something_again() -> Outcome {
    let place = Place::new()?;
    let journal = place.open(|_| {})?;
    journal.record(&intent(1)).await?;
    let well = journal.health();
    assert_eq!((well.written, well.failed, well.is_writable), (1, 0, true));
    place.disk.room.store(0, Ordering::SeqCst);
    assert!(journal.record(&intent(2)).await.is_err());
    let ill = journal.health();
    assert_eq!((ill.written, ill.failed, ill.is_writable), (1, 1, false));
    assert!(journal.try_again().is_err() && !journal.health().is_writable);
    place.disk.room.store(i64::MAX, Ordering::SeqCst);
    assert!(!journal.health().is_writable, "nobody has looked yet");
    assert!(journal.try_again().is_ok() && journal.health().is_writable);
    journal.close().await?;
    assert_eq!(place.problem()?.map(|problem| problem.sentence), None);
    Ok(())
}
