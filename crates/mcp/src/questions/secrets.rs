//! Words by which a form asks for what no form may ask for (GATE-18): passwords, keys, tokens, numbers of cards.
//!
//! Words are all there is to go by, so they are read as a person would, whatever the case, the separators or the
//! alphabet their letters are borrowed from. An innocent word that only contains a guilty one stays innocent.

use toolwarden_core::name;

/// Alone or inside of a longer word: nobody writes them and means something else.
const ANYWHERE: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "apikey",
    "accesstoken",
    "authtoken",
    "privatekey",
    "creditcard",
    "cardnumber",
    "securitycode",
    "recoverycode",
];
const WHOLE: [&str; 7] = ["credential", "credentials", "cvv", "cvc", "ssn", "otp", "pwd"];
/// What begins like a secret and is none.
const NO_SECRETS: [&str; 5] = ["secretar", "secretion", "secretive", "secretly", "secretory"];
/// Beside one of these a token is counted, or turns a page.
const NO_TOKENS: [&str; 14] = [
    "budget",
    "continuation",
    "count",
    "design",
    "length",
    "limit",
    "max",
    "maximum",
    "min",
    "minimum",
    "next",
    "page",
    "per",
    "usage",
];
/// Letters, and what is taken for them: accents, other alphabets. Other widths and styles fold by themselves.
const LOOK_ALIKES: [(char, &str); 18] = [
    ('a', "àáâãäåāăąɑαа"),
    ('c', "çćĉċčϲс"),
    ('d', "ďđðԁ"),
    ('e', "èéêëēĕėęěεеє"),
    ('h', "ĥħһ"),
    ('i', "ìíîïĩīĭįıιіӏ"),
    ('k', "ķĸκк"),
    ('l', "ĺļľłⅼ"),
    ('n', "ñńņňη"),
    ('o', "òóôõöøōŏőοоօ"),
    ('p', "þρр"),
    ('r', "ŕŗřʀ"),
    ('s', "śŝşšѕ"),
    ('t', "ţťŧτт"),
    ('u', "ùúûüũūŭůűųυս"),
    ('v', "νѵ"),
    ('w', "ŵẁẃẅωԝ"),
    ('y', "ýÿŷγу"),
];
/// Digits and signs in the place of letters.
const STAND_INS: [(char, char); 8] =
    [('0', 'o'), ('1', 'i'), ('3', 'e'), ('4', 'a'), ('5', 's'), ('7', 't'), ('@', 'a'), ('$', 's')];

/// Most words that are read as one that was taken apart.
const APART: usize = 4;

/// Whether a name, a title or a description asks for a secret.
pub(super) fn are_asked_by(text: &str) -> bool {
    let ways = [(false, false), (false, true), (true, false), (true, true)];
    ways.into_iter().any(|(by_humps, with_stand_ins)| name_a_secret(&words(text, by_humps, with_stand_ins)))
}

fn name_a_secret(words: &[String]) -> bool {
    let is_one = |(place, word): (usize, &String)| {
        ANYWHERE.iter().any(|secret| word.contains(secret))
            || WHOLE.contains(&word.as_str())
            || (word.contains("secret") && !NO_SECRETS.iter().any(|innocent| word.contains(innocent)))
            || word.strip_suffix("token").is_some_and(|what| !is_counted(what, words, place))
    };
    let is_apart = |many: usize| {
        words.windows(many).any(|together| {
            let together = together.concat();
            ANYWHERE.contains(&together.strip_suffix('s').unwrap_or(&together))
        })
    };
    // One pins a note, too: only a field that is called nothing else asks for a number.
    let is_pin = matches!(words, [only] if only == "pin");
    is_pin || words.iter().enumerate().any(is_one) || (2..=APART).any(is_apart)
}

/// Whether a token is none that opens anything, by what is written before and after it.
fn is_counted(what: &str, words: &[String], place: usize) -> bool {
    let before = place.checked_sub(1).and_then(|place| words.get(place));
    let mut beside = before.into_iter().chain(words.get(place + 1));
    NO_TOKENS.contains(&what) || what.ends_with("page") || beside.any(|word| NO_TOKENS.contains(&word.as_str()))
}

/// The words of a text in plain small letters.
fn words(text: &str, by_humps: bool, with_stand_ins: bool) -> Vec<String> {
    let spaced = if by_humps { without_humps(text) } else { text.to_owned() };
    // Folds what is only another form of the same letter, as full-width ones.
    let folded = name::registration_key(&spaced.to_lowercase());
    let plain: String = folded
        .chars()
        .filter(|character| !is_unseen(*character))
        .map(|character| plain(character, with_stand_ins).unwrap_or(' '))
        .collect();
    let mut words: Vec<String> = Vec::new();
    let mut was_letter = false;
    for word in plain.split_whitespace() {
        // Letters that were spaced out are one word.
        let is_letter = word.chars().nth(1).is_none();
        match words.last_mut().filter(|_| was_letter && is_letter) {
            Some(last) => last.push_str(word),
            None => words.push(word.to_owned()),
        }
        was_letter = is_letter;
    }
    words
}

/// `apiKey` and `APIKey` as `api Key` and `API Key`.
fn without_humps(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len() + 8);
    let mut before: Option<char> = None;
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let ends_word = before.is_some_and(char::is_lowercase);
        let begins_word = before.is_some_and(char::is_uppercase) && rest.peek().is_some_and(|next| next.is_lowercase());
        if character.is_uppercase() && (ends_word || begins_word) {
            spaced.push(' ');
        }
        spaced.push(character);
        before = Some(character);
    }
    spaced
}

/// Shows as nothing, or sits on the letter before it.
fn is_unseen(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
    )
}

/// The letter a character is read as; none for what stands between words.
fn plain(character: char, with_stand_ins: bool) -> Option<char> {
    if character.is_ascii_lowercase() {
        return Some(character);
    }
    if let Some((_, letter)) = STAND_INS.iter().find(|(stand_in, _)| *stand_in == character) {
        return with_stand_ins.then_some(*letter);
    }
    let alike = LOOK_ALIKES.iter().find(|(_, alike)| alike.contains(character)).map(|(letter, _)| *letter);
    alike.or_else(|| character.is_alphabetic().then_some(character))
}
