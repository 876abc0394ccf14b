//! The shapes that well-known keys and tokens have: how they begin, what they are made of, how long they are.

/// What a token is made of after its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Letters {
    /// Capitals and digits.
    Capitals,
    Alphanumeric,
    /// With `_` and `-`, as base64 for addresses has them.
    Url,
    /// With dots as well.
    Dotted,
    /// With slashes, as paths have them.
    Path,
}

impl Letters {
    pub(super) fn has(self, byte: u8) -> bool {
        match self {
            Self::Capitals => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Alphanumeric => byte.is_ascii_alphanumeric(),
            Self::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'=' | b'+' | b'/'),
            Self::Path => byte.is_ascii_alphanumeric() || byte == b'/',
        }
    }
}

/// One shape.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) kind: &'static str,
    pub(super) start: &'static str,
    pub(super) letters: Letters,
    /// So many letters follow at least.
    pub(super) least: usize,
    /// So many at most: a longer one is something else.
    pub(super) most: usize,
}

const fn shape(kind: &'static str, start: &'static str, letters: Letters, least: usize) -> Shape {
    Shape { kind, start, letters, least, most: 4096 }
}

const fn exact(kind: &'static str, start: &'static str, letters: Letters, length: usize) -> Shape {
    Shape { kind, start, letters, least: length, most: length }
}

const AWS: &str = "aws-access-key";
const GITHUB: &str = "github-token";
const GITLAB: &str = "gitlab-token";
const SLACK: &str = "slack-token";
const STRIPE: &str = "stripe-key";
const OPENAI: &str = "openai-key";
const GOOGLE: &str = "google-key";
/// Of a service that is not named in findings.
const OTHER: &str = "api-token";

pub(super) const SHAPES: [Shape; 53] = [
    exact(AWS, "AKIA", Letters::Capitals, 16),
    exact(AWS, "ASIA", Letters::Capitals, 16),
    exact(AWS, "ABIA", Letters::Capitals, 16),
    exact(AWS, "ACCA", Letters::Capitals, 16),
    shape(GITHUB, "ghp_", Letters::Alphanumeric, 30),
    shape(GITHUB, "gho_", Letters::Alphanumeric, 30),
    shape(GITHUB, "ghu_", Letters::Alphanumeric, 30),
    shape(GITHUB, "ghs_", Letters::Alphanumeric, 30),
    shape(GITHUB, "ghr_", Letters::Alphanumeric, 30),
    shape(GITHUB, "github_pat_", Letters::Url, 40),
    shape(GITLAB, "glpat-", Letters::Url, 20),
    shape(GITLAB, "gldt-", Letters::Url, 20),
    shape(GITLAB, "glrt-", Letters::Url, 20),
    shape(GITLAB, "glptt-", Letters::Url, 20),
    shape(GITLAB, "glcbt-", Letters::Url, 20),
    shape(SLACK, "xoxb-", Letters::Url, 20),
    shape(SLACK, "xoxp-", Letters::Url, 20),
    shape(SLACK, "xoxa-", Letters::Url, 20),
    shape(SLACK, "xoxr-", Letters::Url, 20),
    shape(SLACK, "xoxs-", Letters::Url, 20),
    shape(SLACK, "xoxe-", Letters::Url, 20),
    shape(SLACK, "xapp-", Letters::Url, 20),
    shape(SLACK, "hooks.slack.com/services/", Letters::Path, 30),
    shape(STRIPE, "sk_live_", Letters::Alphanumeric, 16),
    shape(STRIPE, "rk_live_", Letters::Alphanumeric, 16),
    shape(STRIPE, "sk_test_", Letters::Alphanumeric, 16),
    shape(STRIPE, "rk_test_", Letters::Alphanumeric, 16),
    shape(STRIPE, "whsec_", Letters::Dotted, 24),
    shape("anthropic-key", "sk-ant-", Letters::Url, 24),
    shape(OPENAI, "sk-proj-", Letters::Url, 32),
    shape(OPENAI, "sk-svcacct-", Letters::Url, 32),
    shape(OPENAI, "sk-admin-", Letters::Url, 32),
    shape(OPENAI, "sk-", Letters::Alphanumeric, 32),
    shape(GOOGLE, "AIza", Letters::Url, 35),
    shape(GOOGLE, "ya29.", Letters::Url, 20),
    shape(GOOGLE, "GOCSPX-", Letters::Url, 20),
    shape("npm-token", "npm_", Letters::Alphanumeric, 36),
    shape("pypi-token", "pypi-AgE", Letters::Url, 40),
    shape(OTHER, "hf_", Letters::Alphanumeric, 30),
    shape(OTHER, "dop_v1_", Letters::Alphanumeric, 60),
    shape(OTHER, "SG.", Letters::Dotted, 60),
    shape(OTHER, "shpat_", Letters::Alphanumeric, 32),
    shape(OTHER, "shpss_", Letters::Alphanumeric, 32),
    shape(OTHER, "lin_api_", Letters::Alphanumeric, 32),
    shape(OTHER, "dckr_pat_", Letters::Url, 20),
    shape(OTHER, "AGE-SECRET-KEY-1", Letters::Capitals, 50),
    shape(OTHER, "gsk_", Letters::Alphanumeric, 40),
    shape(OTHER, "xai-", Letters::Alphanumeric, 60),
    shape(OTHER, "hvs.", Letters::Url, 24),
    shape(OTHER, "ATATT3", Letters::Dotted, 50),
    shape(OTHER, "r8_", Letters::Alphanumeric, 35),
    shape(OTHER, "nvapi-", Letters::Url, 50),
    shape(OTHER, "sq0csp-", Letters::Url, 40),
];
