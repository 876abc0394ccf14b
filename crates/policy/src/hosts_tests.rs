//! One host, one text, however it is written.

use super::{Address, normal};

fn host(url: &str) -> Option<String> {
    match Address::read(url) {
        Address::Known(target) => target.host,
        Address::None | Address::Unreadable => None,
    }
}

#[test]
fn work_2_one_host_in_every_writing() {
    for (one, spellings) in [
        (
            "evil.test",
            &[
                "https://evil.test/",
                "https://EVIL.Test/x",
                "https://evil.test./",
                "https://evil.test../",
                "https://evil%2Etest/",
                "https://%65vil.test/",
                "https://evil\u{3002}test\u{ff0e}/",
                "https://\u{ff45}vil.test/",
                "https://user:word@evil.test:8443/",
                "  https://evil.test/",
                "ht\ttps://ev\nil.test/",
                "https:\\\\evil.test\\",
                "https:evil.test",
                "gopher://EVIL.test./",
                "ws://evil.test",
                "custom://%45vil.test../x",
            ][..],
        ),
        (
            "xn--bcher-kva.example",
            &["https://bücher.example/", "https://B\u{dc}CHER.example.", "https://xn--bcher-kva.EXAMPLE"],
        ),
        (
            "127.0.0.1",
            &[
                "http://127.0.0.1/",
                "http://127.0.0.1./",
                "http://127.0.0.1../",
                "http://127.1",
                "http://0x7f.1",
                "http://0177.0.0.1",
                "http://2130706433",
                "http://0x7f000001/",
                "http://[::ffff:127.0.0.1]/",
                "http://[::ffff:7f00:1]",
                "http://[0:0:0:0:0:FFFF:7F00:0001]",
                "custom://127.0.0.1/",
                "custom://0x7f.1./",
            ],
        ),
        ("[::1]", &["http://[::1]/", "http://[0:0:0:0:0:0:0:1]", "http://[0::0001]", "custom://[::1]"]),
    ] {
        for spelling in spellings {
            assert_eq!(host(spelling).as_deref(), Some(one), "{spelling}");
        }
    }
}

#[test]
fn work_2_an_address_nobody_can_read_is_not_one_without_a_host() {
    for text in [
        "not a url",
        "",
        "https://",
        "http://[fe80::1%25eth0]/",
        "http://[::1",
        "https://a b/",
        "https://1.2.3.400/",
        "custom://a%00b/",
    ] {
        assert_eq!(Address::read(text), Address::Unreadable, "{text}");
    }
    for text in ["file:///etc/passwd", "data:text/plain,x", "mailto:a@b"] {
        assert!(matches!(Address::read(text), Address::Known(target) if target.host.is_none()), "{text}");
    }
    assert_eq!(normal("."), None);
}
