"""Changes deciding code in small ways, one at a time, and runs against each change the tests that reach it.

usage: mutants.py SET [K/N]

SET is `deciding` (every mutant of the files that decide), `rest` (a fifth of the others of the same crates), or a
pattern of files. K/N is the Kth of N parts. The mutants are those that `cargo mutants` lists; all of them are built at
once (instrument.py). A mutant that no test notices must stand in survivors.txt with a reason, and one that stands there
must survive. Results are kept in the cache, so that a run that was ended goes on where it was.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from instrument import MODULE, Instrumented

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "toolwarden"

DECIDING = """
    crates/policy/src/decide.rs crates/policy/src/holds.rs crates/policy/src/settle.rs
    crates/policy/src/authorize*.rs crates/policy/src/authorize/*.rs
    crates/policy/src/autorun*.rs crates/policy/src/autorun/*.rs
    crates/policy/src/rules*.rs crates/policy/src/rules/*.rs
    crates/review/src/*.rs
    crates/steps/src/decide.rs crates/steps/src/resolve.rs crates/steps/src/review.rs crates/steps/src/flow.rs
    crates/steps/src/classify.rs
""".split()
REST = ["toolwarden-policy", "toolwarden-shell", "toolwarden-review"]
# Packages whose tests are run for mutants of another one.
ALSO_TESTED_BY = {
    "toolwarden-policy": ["toolwarden-advice", "toolwarden-doors"],
    "toolwarden-review": ["toolwarden-doors"],
    "toolwarden-steps": ["toolwarden-doors"],
}

FEW_CASES = {"PROPTEST_CASES": "24", "TOOLWARDEN_CASES": "3"}
LONGEST_SECONDS = 300
# The result of a mutant that was tried with few cases alone.
FEW = "survives few cases"


def listed(which, part):
    """The mutants of a set."""
    args = ["cargo", "mutants", "--list", "--json"]
    if which == "rest":
        args += [word for package in REST for word in ("--package", package)]
        args += [word for file in DECIDING for word in ("--exclude", file)]
    else:
        files = DECIDING if which == "deciding" else [which]
        args += ["--workspace", *(word for file in files for word in ("--file", file))]
    mutants = json.loads(subprocess.run(args, cwd=ROOT, check=True, capture_output=True).stdout)
    # Every fifth of the rest, so that each file has its share.
    mutants = mutants[::5] if which == "rest" else mutants
    k, n = (int(number) for number in part.split("/"))
    mutants = [one for at, one in enumerate(mutants) if at % n == k]
    for number, mutant in enumerate(mutants, 1):
        mutant["number"] = number
        mutant["plain"] = re.sub(r"^([^:]+):\d+:\d+: ", r"\1: ", mutant["name"])
        # A result counts for exactly this change, wherever it stands in its file.
        change = re.sub(r"^@@.*$", "", mutant["diff"], flags=re.M)
        mutant["key"] = hashlib.sha256(change.encode()).hexdigest()[:16] + " " + mutant["plain"]
    return mutants


class Tree:
    """A copy of the sources with all mutants in it, and its tests."""

    def __init__(self, mutants, out):
        self.mutants, self.out = mutants, out
        self.path = out / "tree"
        self.env = {
            **os.environ,
            "CARGO_TARGET_DIR": str(CACHE / "target-mutants"),
            "CARGO_PROFILE_DEV_DEBUG": "0",
            "CARGO_INCREMENTAL": "1",
            "INSTA_UPDATE": "no",
            "INSTA_WORKSPACE_ROOT": str(self.path),
            "RUST_BACKTRACE": "0",
            # Futures with many bodies are large.
            "RUST_MIN_STACK": str(64 << 20),
        }
        packages = sorted({mutant["package"] for mutant in mutants})
        self.packages = sorted({test for one in packages for test in tested_by(one)})
        self.flags = [word for package in self.packages for word in ("-p", package)]

    def write(self, unviable):
        """Writes the sources; says which lines belong to which mutant, and what is left over."""
        self.function_of, lines_of, self.left = {}, {}, []
        by_file = {}
        for mutant in self.mutants:
            by_file.setdefault(mutant["file"], []).append(mutant)
        crates = {f"{mutant['file'].split('/src/')[0]}/src/lib.rs" for mutant in self.mutants}
        functions = 0
        names = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in names.splitlines():
            source = ROOT / name
            if not source.exists():
                continue
            data = source.read_bytes()
            if name in by_file:
                live = [mutant for mutant in by_file[name] if mutant["name"] not in unviable]
                one = Instrumented(data, live, functions)
                functions += len(one.chosen)
                self.function_of |= one.function_of
                self.left += one.left
                lines_of[name], data = one.lines_of, one.text
            if name in crates:
                data += MODULE
            target = self.path / name
            if not target.exists() or target.read_bytes() != data:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
                target.chmod(source.stat().st_mode)
        return lines_of

    def build(self):
        """Builds all tests, without the mutants that do not compile; gives these."""
        known = self.out / "unviable.json"
        unviable = set(json.loads(known.read_text())) if known.exists() else set()
        while True:
            lines_of = self.write(unviable)
            args = ["cargo", "check", "--tests", "--keep-going", "--message-format=json", *self.flags]
            ran = subprocess.run(args, cwd=self.path, env=self.env, capture_output=True, text=True)
            if ran.returncode == 0:
                break
            bad, others = self._blamed(ran.stdout, lines_of)
            say(f"{len(bad)} mutants do not compile")
            if not bad:
                sys.exit("the sources do not compile:\n" + "\n".join(others[:5]) + ran.stderr[-1000:])
            unviable |= bad
            known.write_text(json.dumps(sorted(unviable)))
        args = ["cargo", "nextest", "list", "--list-type", "binaries-only", "--message-format", "json", *self.flags]
        ran = subprocess.run(args, cwd=self.path, env=self.env, capture_output=True, text=True)
        if ran.returncode != 0:
            sys.exit(ran.stderr)
        self.binaries = json.loads(ran.stdout)["rust-binaries"]
        return unviable

    def _blamed(self, messages, lines_of):
        """The mutants whose lines the compiler complains of, and complaints of anything else."""
        by_number = {mutant["number"]: mutant["name"] for mutant in self.mutants}
        bad, others = set(), []
        for line in messages.splitlines():
            message = json.loads(line).get("message") if line.startswith("{") else None
            if not isinstance(message, dict) or message.get("level") != "error" or not message["spans"]:
                continue
            spans = sorted(message["spans"], key=lambda span: not span["is_primary"])
            hits = [
                number
                for span in spans
                for first, last, number in lines_of.get(span["file_name"], [])
                if first <= span["line_start"] <= last
            ]
            if hits:
                bad.add(by_number[hits[0]])
            else:
                others.append(message["rendered"])
        return bad, others

    def trace(self):
        """Runs every test once, without a mutant; gives the tests that reach each function, fastest first."""
        traces = self.out / "traces"
        kept = self.out / "reached.json"
        # A binary keeps its path when tests are added to it.
        paths = sorted(one["binary-path"] for one in self.binaries.values())
        built = [(path, os.stat(path).st_mtime_ns) for path in paths]
        mark = hashlib.sha256(json.dumps(built).encode()).hexdigest()
        if kept.exists() and (found := json.loads(kept.read_text()))["mark"] == mark:
            return {int(key): [tuple(test) for test in tests] for key, tests in found["reached"].items()}
        subprocess.run(["rm", "-rf", str(traces)], check=True)
        traces.mkdir()
        args = ["cargo", "nextest", "run", "--no-fail-fast", "--status-level", "all", *self.flags]
        env = {**self.env, **FEW_CASES, "MUTANT_TRACE": str(traces)}
        ran = subprocess.run(args, cwd=self.path, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if ran.returncode != 0:
            sys.exit("the tests fail without a mutant:\n" + ran.stderr[-3000:])
        seconds = {}
        for took, binary, test in re.findall(r"PASS \[\s*([\d.]+)s\]\s+(?:\([^)]*\)\s+)?(\S+) (\S+)", ran.stderr):
            seconds[(binary, test)] = float(took)
        reached = {}
        for file in traces.iterdir():
            binary, _, test = file.name.partition("@")
            for function in set(file.read_text().split()):
                reached.setdefault(int(function), []).append((binary, test))
        for tests in reached.values():
            tests.sort(key=lambda test: seconds.get(test, 99.0))
        timed = {key: [(*test, seconds.get(test, 99.0)) for test in tests] for key, tests in reached.items()}
        kept.write_text(json.dumps({"mark": mark, "reached": timed}))
        return timed

    def notices(self, number, tests, more_env):
        """Whether one of these tests fails with a mutant; its name, or none."""
        # Few and fast ones first: most mutants are noticed at once.
        fast = [test for test in tests[:25] if test[2] < 1.0]
        middle = [test for test in tests if test not in fast and test[2] < 1.0]
        slow = [test for test in tests if test[2] >= 1.0]
        for stage in (fast, middle, slow):
            by_binary = {}
            for binary, test, took in stage:
                by_binary.setdefault(binary, []).append((test, took))
            for binary, of in by_binary.items():
                if failed := self._run(number, binary, of, more_env):
                    return failed
        return None

    def _run(self, number, binary, tests, more_env):
        one = next(one for name, one in self.binaries.items() if name.replace("/", "_") == binary)
        manifest = self.path / "crates" / one["package-id"].split("#")[0].rsplit("/", 1)[1]
        env = {**self.env, **more_env, "ACTIVE_MUTANT": str(number), "CARGO_MANIFEST_DIR": str(manifest)}
        args = [one["binary-path"], "--exact", "--test-threads", "2", *(name for name, _ in tests)]
        patience = LONGEST_SECONDS if not more_env else max(20.0, 5 * sum(took for _, took in tests))
        with open(self.out / "last-output", "w+b") as output:
            try:
                code = subprocess.run(
                    args, cwd=manifest, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=patience
                ).returncode
            except subprocess.TimeoutExpired:
                return "timeout"
            output.seek(0)
            text = output.read().decode(errors="replace")
        if code == 0:
            return None
        return next(iter(re.findall(r"^test (\S+) .*FAILED", text, re.M)), f"exit code {code}")


def tested_by(package):
    return [package, *ALSO_TESTED_BY.get(package, [])]


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def run(mutants, tree, out):
    """Runs all mutants; gives the name of the test that notices each, or none."""
    unviable = tree.build()
    reached = tree.trace()
    kept = out / "results.json"
    results = json.loads(kept.read_text()) if kept.exists() else {}
    left = {mutant["name"] for mutant in tree.left}
    todo = [one for one in mutants if one["name"] not in unviable and one["name"] not in left]
    say(f"{len(todo)} mutants to run, {len(unviable)} do not compile, {len(left)} cannot be chosen while tests run")
    # The package's own tests with few random cases first; then with all of them, and those of packages that use it,
    # for the mutants that the list does not explain.
    explained = listed_survivors()
    for cases, survives in ((FEW_CASES, FEW), ({}, None)):
        for at, mutant in enumerate(todo):
            known = results.get(mutant["key"], "")
            is_second_look = known == FEW and cases is not FEW_CASES and mutant["plain"] not in explained
            if known == "" or is_second_look:
                packages = [mutant["package"]] if cases is FEW_CASES else tested_by(mutant["package"])
                tests = reached.get(tree.function_of[mutant["number"]], [])
                tests = [test for test in tests if test[0].split("::")[0] in packages]
                noticed = tree.notices(mutant["number"], tests, cases)
                results[mutant["key"]] = survives if noticed is None else noticed
                kept.write_text(json.dumps(results, indent=0))
                if noticed is None:
                    say(f"not noticed ({len(tests)} tests reach it): {mutant['name']}")
            if at % 100 == 99:
                say(f"{at + 1} of {len(todo)}")
        if os.environ.get("ONLY_FEW_CASES"):
            break
    found = {one["plain"]: [] for one in todo}
    for one in todo:
        found[one["plain"]].append(results[one["key"]])
    for mutant in tree.left:
        if mutant["key"] not in results and not os.environ.get("ONLY_FEW_CASES"):
            results[mutant["key"]] = alone(mutant, out)
            kept.write_text(json.dumps(results, indent=0))
        if mutant["key"] in results:
            found.setdefault(mutant["plain"], []).append(results[mutant["key"]])
    return found


def alone(mutant, out):
    """A mutant that needs a build of its own."""
    pattern = "^" + re.escape(mutant["name"]) + "$"
    args = ["cargo", "mutants", "--workspace", "--file", mutant["file"], "--re", pattern, "--test-tool", "nextest"]
    args += ["--baseline", "skip", "--timeout", str(LONGEST_SECONDS), "--output", str(out / "alone")]
    env = {**os.environ, "CARGO_TARGET_DIR": str(CACHE / "target-mutants"), "CARGO_PROFILE_DEV_DEBUG": "0"}
    code = subprocess.run(args, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    noticed = {0: "a build of its own", 2: None, 3: "timeout"}
    if code not in noticed:
        sys.exit(f"cargo mutants failed ({code}): {mutant['name']}")
    if noticed[code] is None:
        say(f"not noticed: {mutant['name']}")
    return noticed[code]


def listed_survivors():
    """The mutants that survivors.txt explains."""
    lines = (HERE / "survivors.txt").read_text().splitlines()
    return {line.split("  # ")[0] for line in lines if line and not line.startswith("#")}


def compare(found, mutants, which, part):
    """Holds the survivors to the list; gives what is wrong with it."""
    known = listed_survivors()
    survived = {plain for plain, results in found.items() if None in results or FEW in results}
    wrong = [
        ("no test notices these, and the list does not explain them", survived - known),
        ("these are noticed by now; take them off the list", (set(found) - survived) & known),
    ]
    if which != "rest" and part == "0/1":
        files = {mutant["file"] for mutant in mutants}
        gone = {line for line in known if line.split(":")[0] in files} - {mutant["plain"] for mutant in mutants}
        wrong.append(("there is no such code any more; take these off the list", gone))
    return [f"{what}:\n  " + "\n  ".join(sorted(names)) for what, names in wrong if names]


def main():
    which, part = (sys.argv[1:] + ["deciding", "0/1"][len(sys.argv) - 1 :])[:2]
    out = CACHE / "mutants" / re.sub(r"\W+", "-", f"{which} {part}")
    out.mkdir(parents=True, exist_ok=True)
    mutants = listed(which, part)
    found = run(mutants, Tree(mutants, out), out)
    survived = sum(None in results or FEW in results for results in found.values())
    say(f"{len(found)} kinds of mutants, {survived} of them survive")
    if wrong := compare(found, mutants, which, part):
        sys.exit("\n".join(wrong))


main()
