//! What is found in rules, word for word and place by place.

use std::fmt::Write;

use toolwarden_core::{Layer, Origin};

use super::super::Rules;
use crate::input::{Declared, RuleFile, ServerInput, ToolDefinition};
use crate::servers::Servers;

fn servers() -> Servers {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "count": {"type": "integer"},
            "list": {"type": "array", "items": {"type": "string"}},
            "deep": {"type": "object", "properties": {"flag": {"type": "boolean"}}, "required": ["flag"]},
        },
        "required": ["title"],
    });
    let tool = |name: &str, input_schema| ToolDefinition {
        name: name.to_owned(),
        description: None,
        input_schema,
        output_schema: None,
    };
    let mut listed = ServerInput::new("gh", Origin::record(Layer::Config, "test"), Declared::ByOperator);
    listed.catalog = Some(vec![tool("issue", Some(schema)), tool("plain", None)]);
    let unlisted = ServerInput::new("new", Origin::record(Layer::Config, "test"), Declared::ByOperator);
    Servers::compile(&[listed, unlisted])
}

fn found(text: &str) -> String {
    let file = RuleFile { origin: Origin::new(Layer::Config, "rules.cedar", 1, 1), text: text.to_owned() };
    let findings = match Rules::compile(&[file]) {
        Ok(rules) => rules.validate(&servers()),
        Err(findings) => findings,
    };
    let mut all = String::new();
    for finding in findings {
        let (line, column) = (finding.origin.line, finding.origin.column);
        let _ = writeln!(all, "  {} {} {line}:{column} {}", finding.severity.as_str(), finding.code, finding.message);
        if let Some(advice) = finding.suggestion {
            let _ = writeln!(all, "    {advice}");
        }
    }
    if all.is_empty() { "  nothing\n".to_owned() } else { all }
}

#[test]
fn gate_10_findings_word_for_word() {
    let on_issue = |effect: &str, condition: &str| {
        format!("{effect}(principal, action, resource == Mcp::Tool::\"gh:issue\") when {{ {condition} }};")
    };
    let mut texts: Vec<String> = [
        "context.arguments has count && context.arguments.count > 3",
        "context.arguments.title == \"x\"",
        "!(context.arguments has count) || context.arguments.count > 3",
        "if context.arguments has count then context.arguments.count > 3 else true",
        "if context.arguments has count then context.arguments.count > 3 else false",
        "context.arguments has count && [1, 2].contains(context.arguments.count)",
        "context.arguments has list && context.arguments.list.contains(\"x\")",
        "context.arguments has deep && context.arguments.deep.flag",
        "context.arguments has deep.flag && context.arguments.deep.flag",
        "context.args.hasTag(\"/count\") && context.args.getTag(\"/count\") == \"3\"",
        "context.args.hasTag(\"/a~1b/c\") && context.args.getTag(\"/a~1b/c\") == \"3\"",
        "context.args.hasTag(\"/count\")",
        "context has task_id && context.task_id == \"t1\"",
        "if context has task_id then context.task_id == \"t1\" else true",
        "context has task_id",
        "true && context has host && context.host == \"h\"",
        "false || (context has host && context.host == \"h\")",
        "context.operation == \"tools/call\"",
        "context.arguments.titel == \"x\"",
    ]
    .iter()
    .flat_map(|condition| [on_issue("forbid", condition), on_issue("permit", condition)])
    .collect();
    texts.extend(
        [
            "forbid(principal, action, resource == Mcp::Tool::\"gh:issue\") unless { context.arguments has count && context.arguments.count < 3 };",
            "\n\n   forbid(principal, action, resource == Mcp::Tool::\"gh:gone\");",
            "permit(principal, action, resource);\n  forbid(principal, action, resource in Mcp::Server::\"gone\");",
            "permit(principal, action, resource);\n\n    forbid(principal, action,, resource);",
            "permit(principal, action, resource);\n  @hold(\"x\") permit(principal, action, resource is Mcp::Tool);",
            "  permit(principal, action == Action::\"other\", resource);",
            "forbid(principal, action, resource == Mcp::Tool::\"new:any\");",
            "forbid(principal, action, resource) when { context.arguments.x == 1 };",
            "forbid(principal, action, resource == Mcp::Tool::\"gh:plain\") when { context.arguments.x == 1 };",
            "forbid(principal, action, resource in Mcp::Server::\"gh\") when { context.arguments.x == 1 };",
            "forbid(principal is Agent, action, resource);\nforbid(principal == Agent::\"a\", action, resource);\npermit(principal == Agent::\"a\", action, resource in Mcp::Server::\"gh\");",
            "forbid(principal in User::\"a\", action, resource);\nforbid(principal is Agent in User::\"a\", action, resource);",
            "forbid(principal, action, resource in Mcp::Server::\"gh\");\nforbid(principal, action, resource == Mcp::Tool::\"gh:issue\");\nforbid(principal, action, resource == Mcp::Tool::\"new:issue\");",
            "permit(principal, action, resource);\nforbid(principal, action, resource in Mcp::Server::\"gh\");",
            "@hold(\"x\") forbid(principal, action, resource);\npermit(principal, action, resource);",
            "forbid(principal, action, resource) when { context.seen.contains(\"x\") };\nforbid(principal, action, resource) when { context.seen.contains(\"x\") };",
            "forbid(principal, action, resource);\nforbid(principal, action, resource);",
        ]
        .map(str::to_owned),
    );
    let mut all = String::new();
    for text in texts {
        let _ = write!(all, "{text}\n{}", found(&text));
    }
    insta::assert_snapshot!("findings", all);
}
