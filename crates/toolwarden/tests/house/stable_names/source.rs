//! What is gathered from the source text: fields of serialised types, keys of JSON that is written by hand, words, codes.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprMatch, Fields, ImplItemFn, Item, ItemEnum, ItemStruct, Lit, Macro, Pat};

use crate::workspace;

/// Product code, without its tests.
fn files() -> Vec<syn::File> {
    let is_product = |path: &str| {
        path.starts_with("crates/")
            && path.contains("/src/")
            && !path.ends_with("_tests.rs")
            && !path.contains("/tests")
    };
    let files = workspace::rust_files().into_iter().filter(|file| is_product(&file.path));
    files
        .map(|file| {
            let parsed = syn::parse_file(&file.text);
            assert!(parsed.is_ok(), "{} cannot be parsed", file.path);
            parsed.unwrap_or_else(|_| unreachable!())
        })
        .collect()
}

/// A line for each type that is serialised or deserialised: its fields, or the words of its variants.
pub fn serialised() -> BTreeSet<String> {
    gathered(|found, item| match item {
        Item::Struct(one) if is_serialised(&one.attrs) => found.extend(of_struct(one)),
        Item::Enum(one) if is_serialised(&one.attrs) => found.extend(of_enum(one)),
        _ => {}
    })
}

fn gathered(mut each: impl FnMut(&mut BTreeSet<String>, &Item)) -> BTreeSet<String> {
    fn walk(items: &[Item], each: &mut impl FnMut(&mut BTreeSet<String>, &Item), found: &mut BTreeSet<String>) {
        for item in items {
            match item {
                Item::Mod(inner) if !is_test(&inner.attrs) => {
                    walk(inner.content.as_ref().map_or(&[], |(_, items)| items.as_slice()), each, found);
                }
                Item::Mod(_) => {}
                item => each(found, item),
            }
        }
    }
    let mut found = BTreeSet::new();
    for file in files() {
        walk(&file.items, &mut each, &mut found);
    }
    found
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|one| one.path().is_ident("cfg") && tokens(one).contains("test"))
}

fn tokens(attribute: &Attribute) -> String {
    attribute.meta.require_list().map(|list| list.tokens.to_string()).unwrap_or_default()
}

fn is_serialised(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|one| one.path().is_ident("derive") && tokens(one).contains("erialize"))
}

/// What `#[serde(..)]` says, as text without blanks.
fn serde(attributes: &[Attribute]) -> String {
    let said: String =
        attributes.iter().filter(|one| one.path().is_ident("serde")).map(|one| tokens(one) + ",").collect();
    said.replace(' ', "")
}

/// `rename = "x"`, `rename_all = "x"`, `tag = "x"`
fn value(said: &str, name: &str) -> Option<String> {
    let (_, rest) = format!(",{said}").split_once(&format!(",{name}=\"")).map(|(a, b)| (a.to_owned(), b.to_owned()))?;
    rest.split('"').next().map(str::to_owned)
}

fn renamed(name: &str, own: &str, all: Option<&str>) -> String {
    if let Some(name) = value(own, "rename") {
        return name;
    }
    let name = name.trim_start_matches("r#");
    let words: Vec<String> = words_of(name);
    let capital =
        |word: &String| word.chars().take(1).flat_map(char::to_uppercase).chain(word.chars().skip(1)).collect();
    match all {
        Some("snake_case") => words.join("_"),
        Some("kebab-case") => words.join("-"),
        Some("lowercase") => words.concat(),
        Some("SCREAMING_SNAKE_CASE") => words.join("_").to_uppercase(),
        Some("camelCase") => {
            words.iter().take(1).cloned().chain(words.iter().skip(1).map(capital)).collect::<Vec<String>>().concat()
        }
        _ => name.to_owned(),
    }
}

/// The words of a Rust name in small letters.
fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for letter in name.chars() {
        if letter == '_' || letter.is_uppercase() || words.is_empty() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter != '_') {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn fields(fields: &Fields, all: Option<&str>) -> Vec<String> {
    let mut found = Vec::new();
    for field in fields {
        let own = serde(&field.attrs);
        let Some(name) = &field.ident else { continue };
        if own.split(',').any(|word| word == "skip") {
            continue;
        }
        let mark = if own.contains("flatten") {
            ".."
        } else if own.contains("skip_serializing_if") || own.contains("default") || is_option(&field.ty) {
            "?"
        } else {
            ""
        };
        found.push(format!("{}{mark}", renamed(&name.to_string(), &own, all)));
    }
    found.retain(|name| !name.ends_with(".."));
    found.sort();
    found
}

fn is_option(kind: &syn::Type) -> bool {
    matches!(kind, syn::Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Option"))
}

fn of_struct(one: &ItemStruct) -> Option<String> {
    let all = value(&serde(&one.attrs), "rename_all");
    let fields = fields(&one.fields, all.as_deref());
    (!fields.is_empty()).then(|| format!("{{ {} }}", fields.join(" ")))
}

fn of_enum(one: &ItemEnum) -> Option<String> {
    let said = serde(&one.attrs);
    let all = value(&said, "rename_all");
    let tag = value(&said, "tag").map(|tag| format!("{tag}: ")).unwrap_or_default();
    let mut words: Vec<String> = Vec::new();
    for variant in &one.variants {
        let own = serde(&variant.attrs);
        let inner = fields(&variant.fields, value(&said, "rename_all_fields").as_deref());
        let inner = if inner.is_empty() { String::new() } else { format!(" {{ {} }}", inner.join(" ")) };
        words.push(format!("{}{inner}", renamed(&variant.ident.to_string(), &own, all.as_deref())));
    }
    words.sort();
    (!words.is_empty() && !said.contains("untagged")).then(|| format!("{tag}{}", words.join(" | ")))
}

/// Calls a function for every macro in the product code.
struct Macros<'f>(&'f mut dyn FnMut(&str, &TokenStream));

impl<'ast> Visit<'ast> for Macros<'_> {
    fn visit_macro(&mut self, one: &'ast Macro) {
        let name = one.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        (self.0)(&name, &one.tokens);
    }

    fn visit_item_mod(&mut self, one: &'ast syn::ItemMod) {
        if !is_test(&one.attrs) {
            visit::visit_item_mod(self, one);
        }
    }
}

/// The keys of each `json!({..})`, a line for each object.
pub fn json_objects() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut each = |name: &str, tokens: &TokenStream| {
        if name == "json" {
            objects(tokens, &mut found);
        }
    };
    for file in files() {
        Macros(&mut each).visit_file(&file);
    }
    found
}

fn objects(tokens: &TokenStream, found: &mut BTreeSet<String>) {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut keys = BTreeSet::new();
    for pair in trees.windows(2) {
        if let [TokenTree::Literal(key), TokenTree::Punct(colon)] = pair
            && colon.as_char() == ':'
        {
            keys.insert(key.to_string().trim_matches('"').to_owned());
        }
    }
    if !keys.is_empty() {
        found.insert(format!("{{ {} }}", keys.into_iter().collect::<Vec<_>>().join(" ")));
    }
    for tree in trees {
        if let TokenTree::Group(group) = tree
            && matches!(group.delimiter(), Delimiter::Brace | Delimiter::Bracket | Delimiter::Parenthesis)
        {
            objects(&group.stream(), found);
        }
    }
}

/// Functions that give the stable word of a variant.
const GIVE_WORDS: [&str; 6] = ["as_str", "code", "door", "slug", "word", "name"];

struct Words(BTreeSet<String>);

impl<'ast> Visit<'ast> for Words {
    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if GIVE_WORDS.iter().any(|name| function.sig.ident == name) {
            self.visit_block(&function.block);
        }
    }

    fn visit_expr_match(&mut self, one: &'ast ExprMatch) {
        let text = |expression: &Expr| match expression {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        };
        let words: BTreeSet<String> = one.arms.iter().filter_map(|arm| text(&arm.body)).collect();
        // Sentences are for people.
        let is_name = |word: &String| !word.is_empty() && !word.contains([' ', ';']);
        if words.len() > 1 && words.iter().all(is_name) {
            self.0.insert(words.into_iter().collect::<Vec<_>>().join(" | "));
        }
    }
}

pub fn words() -> BTreeSet<String> {
    let mut found = Words(BTreeSet::new());
    for file in files() {
        found.visit_file(&file);
    }
    found.0
}

struct Literals(BTreeSet<String>);

impl Literals {
    fn tokens(&mut self, tokens: &TokenStream) {
        for tree in tokens.clone() {
            match tree {
                TokenTree::Group(group) => self.tokens(&group.stream()),
                TokenTree::Literal(literal) => self.text(&literal.to_string().replace("\\\"", "\"")),
                _ => {}
            }
        }
    }

    /// Parts of a text that other programs rely on.
    fn text(&mut self, text: &str) {
        let is_end = |letter: char| !(letter.is_ascii_alphanumeric() || "/_-.*".contains(letter));
        for word in text.split(is_end).filter(|word| word.len() > 3) {
            let is_path = ["/api/", "/mcp", "/sse", "/approve", "/healthz", "/readyz", "/metrics", "/.well-known/"];
            let is_variable = word.strip_prefix("TOOLWARDEN_").is_some_and(|rest| !rest.is_empty());
            let is_meta = word.strip_prefix("toolwarden/").is_some_and(|rest| !rest.is_empty());
            let is_header = word.to_ascii_lowercase().starts_with("x-toolwarden-") || word.starts_with("webhook-");
            if is_variable || is_meta || is_header || is_path.iter().any(|start| word.starts_with(start)) {
                self.0.insert(word.trim_end_matches(['.', '/']).to_owned());
            }
        }
    }
}

impl<'ast> Visit<'ast> for Literals {
    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        self.text(&text.value());
    }

    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_macro(&mut self, one: &'ast Macro) {
        self.tokens(&one.tokens);
    }

    fn visit_item_mod(&mut self, one: &'ast syn::ItemMod) {
        if !is_test(&one.attrs) {
            visit::visit_item_mod(self, one);
        }
    }
}

pub fn literals() -> BTreeSet<String> {
    let mut found = Literals(BTreeSet::new());
    for file in files() {
        found.visit_file(&file);
    }
    found.0
}

struct Codes(BTreeSet<String>);

impl<'ast> Visit<'ast> for Codes {
    fn visit_expr_unary(&mut self, one: &'ast syn::ExprUnary) {
        if let (syn::UnOp::Neg(_), Expr::Lit(literal)) = (&one.op, &*one.expr)
            && let Lit::Int(number) = &literal.lit
            && number.base10_digits().len() == 5
            && number.base10_digits().starts_with("32")
        {
            self.0.insert(format!("JSON-RPC -{}", number.base10_digits()));
        }
        visit::visit_expr_unary(self, one);
    }

    fn visit_expr_match(&mut self, one: &'ast ExprMatch) {
        for arm in &one.arms {
            let (Pat::Path(pattern), Expr::Lit(literal)) = (&arm.pat, &*arm.body) else { continue };
            let mut names = pattern.path.segments.iter().map(|segment| segment.ident.to_string());
            if let (Some(first), Some(variant), Lit::Int(number)) = (names.next(), names.next(), &literal.lit)
                && first == "Exit"
            {
                self.0.insert(format!("exit {number} {variant}"));
            }
        }
        visit::visit_expr_match(self, one);
    }
}

pub fn codes() -> BTreeSet<String> {
    let mut found = Codes(BTreeSet::new());
    for file in files() {
        found.visit_file(&file);
    }
    found.0
}
