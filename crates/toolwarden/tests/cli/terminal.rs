//! A program on a terminal of its own: keys go in, and the screen is read as a person would see it.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use crate::house::House;
use crate::server::eventually;

/// What came out, and the screen it makes.
#[derive(Default)]
struct Screen {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// A sequence that is not complete.
    rest: String,
    all: String,
}

impl Screen {
    /// Reads text and the few sequences that place it.
    fn take(&mut self, text: &str) {
        self.all.push_str(text);
        let mut text = std::mem::take(&mut self.rest) + text;
        while let Some(first) = text.chars().next() {
            if first != '\u{1b}' {
                self.put(first);
                text.drain(..first.len_utf8());
                continue;
            }
            let Some(end) = text.char_indices().skip(2).find(|(_, letter)| letter.is_ascii_alphabetic()) else {
                self.rest = text;
                return;
            };
            let sequence: String = text.drain(..=end.0).collect();
            self.obey(&sequence);
        }
    }

    fn put(&mut self, letter: char) {
        match letter {
            '\r' => self.column = 0,
            '\n' => self.row += 1,
            _ => {
                if self.rows.len() <= self.row {
                    self.rows.resize(self.row + 1, Vec::new());
                }
                if let Some(row) = self.rows.get_mut(self.row) {
                    row.resize(row.len().max(self.column + 1), ' ');
                    row.splice(self.column..=self.column, [letter]);
                }
                self.column += 1;
            }
        }
    }

    fn obey(&mut self, sequence: &str) {
        match sequence.chars().last() {
            Some('H') => {
                let place = sequence.trim_start_matches("\u{1b}[").trim_end_matches('H');
                let (row, column) = place.split_once(';').unwrap_or(("1", "1"));
                let number = |text: &str| text.parse::<usize>().unwrap_or(1).saturating_sub(1);
                (self.row, self.column) = (number(row), number(column));
            }
            Some('J') => self.rows.clear(),
            Some('K') => {
                if let Some(row) = self.rows.get_mut(self.row) {
                    row.truncate(self.column);
                }
            }
            _ => {}
        }
    }

    fn text(&self) -> String {
        self.rows.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }
}

pub struct Terminal {
    child: Child,
    keys: Option<ChildStdin>,
    screen: Arc<Mutex<Screen>>,
    reader: Option<std::thread::JoinHandle<()>>,
    tty: String,
}

impl Terminal {
    /// Starts the program on a terminal of this size.
    pub fn start(house: &House, arguments: &str, (columns, rows): (u16, u16)) -> Self {
        let program = env!("CARGO_BIN_EXE_toolwarden");
        let tty = house.path("tty");
        let line = format!(
            "stty cols {columns} rows {rows}; tty > {0}.new; mv {0}.new {0}; exec {program} {arguments}",
            tty.display()
        );
        let child = Command::new("script")
            .args(["--quiet", "--flush", "--return", "--command", &line, "/dev/null"])
            .current_dir(house.path("space"))
            .env_clear()
            .env("HOME", house.path("home"))
            .env("PATH", "/usr/bin:/bin")
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else { unreachable!("script(1) is installed") };
        let (keys, Some(mut out)) = (child.stdin.take(), child.stdout.take()) else { unreachable!("both are piped") };
        let screen = Arc::new(Mutex::new(Screen::default()));
        let shared = screen.clone();
        let reader = std::thread::spawn(move || {
            let (mut bytes, mut begun) = ([0; 4096], Vec::new());
            while let Ok(read @ 1..) = out.read(&mut bytes) {
                begun.extend_from_slice(bytes.get(..read).unwrap_or_default());
                // A letter of several bytes may be cut in two.
                let whole = match std::str::from_utf8(&begun) {
                    Ok(_) => begun.len(),
                    Err(error) => error.valid_up_to(),
                };
                let text: Vec<u8> = begun.drain(..whole).collect();
                shared.lock().unwrap_or_else(PoisonError::into_inner).take(&String::from_utf8_lossy(&text));
            }
        });
        assert!(eventually(|| tty.exists()), "the terminal has a name");
        let tty = std::fs::read_to_string(tty).unwrap_or_default().trim().to_owned();
        Self { child, keys, screen, reader: Some(reader), tty }
    }

    pub fn press(&mut self, keys: &str) {
        let sent = self.keys.as_mut().map(|to| to.write_all(keys.as_bytes()).and_then(|()| to.flush()));
        assert!(sent.is_some_and(|sent| sent.is_ok()), "{}", self.text());
    }

    /// What a person sees now.
    pub fn text(&self) -> String {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).text()
    }

    /// Everything that was ever written.
    pub fn all(&self) -> String {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).all.clone()
    }

    /// Waits longer than any row stays.
    fn becomes(&self, is_so: impl Fn(&str) -> bool) -> bool {
        (0..6).any(|_| eventually(|| is_so(&self.text())))
    }

    /// Waits until these words are on the screen.
    pub fn shows(&self, words: &str) {
        assert!(self.becomes(|text| text.contains(words)), "{words}:\n{}", self.text());
    }

    /// Waits until these words are not on the screen any more.
    pub fn hides(&self, words: &str) {
        assert!(self.becomes(|text| !text.contains(words)), "{words}:\n{}", self.text());
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let done = Command::new("stty").args(["-F", &self.tty, "cols", &columns, "rows", &rows]).status();
        assert!(done.is_ok_and(|status| status.success()));
    }

    /// How the line is set up, in the words of stty.
    pub fn line(&self) -> String {
        let said = Command::new("stty").args(["-F", &self.tty, "-a"]).output();
        said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default()
    }

    /// The process on the terminal.
    pub fn pid(&self) -> String {
        let tty = self.tty.trim_start_matches("/dev/");
        let said = Command::new("ps").args(["-t", tty, "-o", "pid=,args="]).output();
        let said = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
        let line = said.lines().find(|line| line.contains("approvals watch")).unwrap_or_default();
        line.split_whitespace().next().unwrap_or_default().to_owned()
    }

    /// The code it ends with.
    pub fn code(&mut self) -> Option<i32> {
        let code = self.child.wait().ok()?.code();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        code
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
