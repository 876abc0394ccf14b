//! What writers write, as far as their words say.

use crate::line::Word;

use super::{Effects, effects};

fn read(line: &str) -> Result<Effects, String> {
    let words: Vec<Word> = line.split(' ').skip(1).map(Word::literal).collect();
    let program = line.split(' ').next().unwrap_or_default();
    effects(program, &words).map_err(str::to_owned)
}

fn texts(words: &[Word]) -> Vec<&str> {
    words.iter().map(|word| word.text.as_str()).collect()
}

#[test]
fn shell_3_writers_name_what_they_write() -> Result<(), String> {
    for (line, written) in [
        ("cp a b", "b"),
        ("cp -t d a b", "d"),
        ("cp -td a b", "d"),
        ("cp --target-directory=d a b", "d"),
        ("cp -- -a b", "b"),
        ("mv a b d", "d a b"),
        ("tee -a x y", "x y"),
        ("sed -i s/a/b/ x y", "x y"),
        ("sed -n -i.bak -e p x", "x"),
        ("sed -n p x", ""),
        ("sort -o x y", "x"),
        ("sort -uox y", "x"),
        ("sort --output=x y", "x"),
        ("curl -so x https://example.com", "x"),
        ("dd if=a of=b", "b"),
        ("install -Dm644 a b", "b"),
        ("install -d a b", "a b"),
        ("tar czf x.tgz src", "x.tgz"),
        ("tar -C d -cf x.tar src", "x.tar"),
        ("tar --create --file=x.tar src", "x.tar"),
        ("tar tf x.tar", ""),
        ("gunzip .git.gz", ".git.gz .git"),
        ("mkdir -p -m 700 x", "x"),
        ("cp a /dev/null", ""),
        ("tee -", ""),
        ("ls -o x", ""),
    ] {
        let mut wanted: Vec<&str> = written.split_ascii_whitespace().collect();
        let effects = read(line)?;
        let mut found = texts(&effects.written);
        wanted.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, wanted, "{line}");
    }
    assert_eq!(texts(&read("tar -C d -C e -cf x.tar a b")?.sources), ["d/e/a", "d/e/b"]);
    assert_eq!(texts(&read("cp -r a/b c d")?.joined()), ["d/b", "d/c"]);
    assert_eq!(texts(&read("mv a/ d")?.joined()), ["d/a"]);
    Ok(())
}

#[test]
fn shell_3_a_writer_with_an_option_nobody_listed_is_refused() {
    for line in [
        "cp --suffix=t --backup=simple x .gi",
        "cp -S t x .gi",
        "cp --targ=d x",
        "cp --parents a/b d",
        "mv --suffix=t x .gi",
        "install --target=d x",
        "ln --suf=t x y",
        "rsync --backup-dir=.git x y",
        "rsync --partial-dir=x a b",
        "rsync --temp-dir=x a b",
        "rsync --log-file=x a b",
        "rsync --files-from=x a b",
        "tar xf a.tar",
        "tar -cf a.tar -T list",
        "tar -cf a.tar --files-from=list",
        "tar -cf a.tar --transform=s/a/b/ x",
        "tar -cf a.tar --xform s/a/b/ x",
        "tar -cf a.tar -s/a/b/ x",
        "tar -cf a.tar --direct=d x",
        "tar -cf a.tar --dir d x",
        "tar -cf host:a.tar x",
        "tar -tf host:a.tar",
        "tar --delete -f a.tar x",
        "tar -rf a.tar x",
        "tar -Af a.tar b.tar",
        "gzip -S t .gi",
        "gunzip -N x.gz",
        "gzip --name x",
        "touch --ref=x y",
        "zip -b x y z",
    ] {
        assert!(read(line).is_err(), "{line}");
    }
}
