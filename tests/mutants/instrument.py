"""Puts all mutants of a source file into one text; an environment variable chooses one while the tests run.

The body of a function with mutants becomes

    { match crate::active_mutant::at(12) { 7 => { body with mutant 7 } 8 => { body with mutant 8 } _ => { body } } }

so that one build serves all of them. `at` is also told which function it is in, for the record of which test reaches
what. Constants, `const fn` and functions that return `impl Trait` cannot be written like this: they are left over.
"""

import tree_sitter_rust
from tree_sitter import Language, Parser

RUST = Language(tree_sitter_rust.language())

# Added to the crate: which mutant is active, and where the test that runs has been.
MODULE = b"""
pub(crate) mod active_mutant {
    #![allow(clippy::all)]
    use std::collections::BTreeSet;
    use std::io::Write as _;
    use std::sync::{Mutex, OnceLock};

    static ACTIVE: OnceLock<u32> = OnceLock::new();
    static TRACE: OnceLock<Option<String>> = OnceLock::new();
    static SEEN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

    pub(crate) fn at(function: u32) -> u32 {
        let trace = TRACE.get_or_init(|| {
            let part = |name: &str| std::env::var(name).unwrap_or_default();
            let directory = std::env::var("MUTANT_TRACE").ok()?;
            Some(format!("{directory}/{}@{}", part("NEXTEST_BINARY_ID").replace('/', "_"), part("NEXTEST_TEST_NAME")))
        });
        if let Some(path) = trace {
            let mut seen = SEEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if seen.insert(function) {
                let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
                let _ = file.and_then(|mut file| writeln!(file, "{function}"));
            }
        }
        *ACTIVE.get_or_init(|| std::env::var("ACTIVE_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(0))
    }
}
"""


class Instrumented:
    """The text, the lines of each mutant in it, the function of each mutant, and the mutants that are left over."""

    def __init__(self, source, mutants, first_function):
        self.source = source
        self.left = []
        self.function_of = {}
        lines = source.split(b"\n")
        functions = _functions(Parser(RUST).parse(source).root_node)
        inside = {}
        for mutant in mutants:
            span = [_offset(lines, mutant["span"][end]) for end in ("start", "end")]
            around = [one for one in functions if _body(one).start_byte < span[0] and span[1] <= one.end_byte]
            function = max(around, key=lambda one: one.start_byte, default=None)
            if function is None or not _can_branch(function):
                self.left.append(mutant)
            else:
                inside.setdefault(function.id, (function, []))[1].append((span, mutant))
        self.chosen = sorted(inside.values(), key=lambda pair: pair[0].start_byte)
        self.numbers = {function.id: first_function + at for at, (function, _) in enumerate(self.chosen)}
        for function, of in self.chosen:
            for _, mutant in of:
                self.function_of[mutant["number"]] = self.numbers[function.id]
        self.text = self._render(0, len(source))
        self.lines_of = _lines_of(self.text)

    def _render(self, start, end):
        """The source between two places, with the functions in it that have mutants."""
        out, at = [], start
        for function, of in self.chosen:
            body = _body(function)
            if body.start_byte < at or body.end_byte > end:
                continue
            arms = []
            for (first, last), mutant in of:
                changed = self.source[body.start_byte : first] + mutant["replacement"].encode()
                changed += self.source[last : body.end_byte]
                arms.append(b"\n/*begin %d*/ %d => %b\n/*end %d*/" % (*[mutant["number"]] * 2, changed, mutant["number"]))
            inner = self._render(body.start_byte + 1, body.end_byte - 1)
            out += [self.source[at : body.start_byte], b"{ match crate::active_mutant::at(%d) {" % self.numbers[function.id]]
            out += [*arms, b"\n_ => {", inner, b"} } }"]
            at = body.end_byte
        out.append(self.source[at:end])
        return b"".join(out)


def _functions(node):
    found = [node] if node.type == "function_item" and _body(node) else []
    for child in node.children:
        found += _functions(child)
    return found


def _body(function):
    return function.child_by_field_name("body")


def _can_branch(function):
    words = [child.text.decode().split() for child in function.children if child.type == "function_modifiers"]
    returned = function.child_by_field_name("return_type")
    return not any("const" in one for one in words) and not (returned and b"impl " in returned.text)


def _offset(lines, place):
    """Where a line and a column are, which count characters from one."""
    line = lines[place["line"] - 1].decode()
    return sum(len(one) + 1 for one in lines[: place["line"] - 1]) + len(line[: place["column"] - 1].encode())


def _lines_of(text):
    """The first and last line of each mutant's arm."""
    found, begun = [], {}
    for number, line in enumerate(text.split(b"\n"), 1):
        if line.startswith(b"/*begin "):
            begun[int(line[8 : line.index(b"*/")])] = number
        elif line.startswith(b"/*end "):
            mutant = int(line[6 : line.index(b"*/")])
            found.append((begun[mutant], number, mutant))
    return found
