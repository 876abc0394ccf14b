//! Texts that have to be read as a whole.

use proptest::prelude::{ProptestConfig, any, prop, prop_assert, prop_assert_eq, proptest};

use super::{Content, Pane, Seen, Style, cut, visible, width};

fn text_of(pane: &Pane) -> String {
    pane.rows.iter().map(|row| row.text.as_str()).collect()
}

/// Nothing that moves the cursor, reorders text or takes no room reaches the terminal as it is.
#[test]
fn review_3_hidden_and_moving_characters_are_shown_as_what_they_are() {
    let hostile = "a\u{1b}[2J\u{202e}b\u{200b}\u{0301}\u{fe0f}\r\n\u{9b}\u{a0}\u{3000}\u{e0041}\u{7f}\tz";
    let seen = visible(hostile);
    assert!(seen.chars().all(|letter| letter == ' ' || letter.is_ascii_graphic()), "{seen:?}");
    for part in
        ["\\u{1b}", "\\u{202e}", "\\u{200b}", "\\u{301}", "\\u{fe0f}", "\\u{d}", "\\u{9b}", "\\u{a0}", "\\u{3000}"]
    {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    let mut content = Content::default();
    content.json("arguments", "{\n\"k\": \"e\u{301} \u{202e} \u{1F600}\"\n}");
    let mut pane = Pane::new(content, Seen::default());
    pane.fit(80, 10);
    assert_eq!(text_of(&pane), "arguments{\"k\": \"e\\u0301 \\u202e \u{1F600}\"}");
    assert!(pane.rows().iter().skip(1).all(|row| row.front == "│ "));
}

#[test]
fn what_is_cut_says_so_and_fits() {
    assert_eq!(cut("notes:write", 20), "notes:write");
    assert!(cut("notes:write", 6).ends_with('…') && width(&cut("notes:write", 6)) <= 6);
    assert_eq!(cut("漢字漢字", 5), "漢…");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Wrapping loses nothing and never makes a row wider than the screen; a text is read only if every row of it was
    /// drawn, at whatever widths.
    #[test]
    fn review_3_a_text_is_read_only_if_all_of_it_was_drawn(
        lines in prop::collection::vec("[ -~é漢]{0,60}", 1..12),
        steps in prop::collection::vec((20_usize..50, 1_usize..6, any::<u8>()), 1..30),
    ) {
        let mut content = Content::default();
        for (place, line) in lines.iter().enumerate() {
            if place % 2 == 0 { content.field("name", line) } else { content.say(line, Style::Plain) }
        }
        let whole: String = lines.concat();
        let mut drawn = vec![false; whole.chars().count()];
        let mut pane = Pane::new(content, Seen::default());
        prop_assert!(!pane.is_read());
        for (columns, height, top) in steps {
            pane.fit(columns, height);
            pane.scroll_to(usize::from(top) % pane.rows.len());
            prop_assert_eq!(text_of(&pane), whole.clone());
            prop_assert!(pane.rows.iter().all(|row| width(&row.front) + width(&row.text) <= columns));
            // What is on the screen, counted in another way: by the characters in front of it.
            let before: usize = pane.rows.iter().take(pane.top).map(|row| row.text.chars().count()).sum();
            let shown: usize = pane.rows().iter().map(|row| row.text.chars().count()).sum();
            pane.was_drawn();
            drawn.iter_mut().skip(before).take(shown).for_each(|letter| *letter = true);
            prop_assert!(!pane.is_read() || drawn.iter().all(|letter| *letter));
        }
        // Going where nothing was drawn yet comes to an end.
        for _ in 0..whole.len() + 2 * lines.len() {
            pane.go_to_unseen();
            pane.was_drawn();
        }
        prop_assert!(pane.is_read());
    }
}
