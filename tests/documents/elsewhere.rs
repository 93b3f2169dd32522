//! The commands of the documents that no test can run here, each with the reason.

/// Document, beginning of the first command of a block that is marked `elsewhere`, and why it does not run here.
pub(crate) const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("README.md", "cargo run --release -- demo", "builds and starts what the test starts by itself"),
    ("README.md", "ln -s", "changes the reader's home; the test has such a link"),
    (
        "docs/diagnostics.md",
        "curl -s $S/apis/v1/gangs/inter",
        "two gangs that tests/conformance makes and tries",
    ),
    (
        "docs/diagnostics.md",
        "curl -s 127.0.0.1:10251/apis/v1/explain/pods/demo/worker-0",
        "a gang that tests/gangs has evict",
    ),
    (
        "docs/devices.md",
        "pellucid run --controllers=noderesource",
        "needs a cluster; tests/kubectl and tests/app have one that publishes",
    ),
    (
        "docs/operations.md",
        "helm install pellucid deploy/chart",
        "needs a cluster; tests/kubectl applies the chart",
    ),
    (
        "docs/operations.md",
        "helm install pellucid-shadow",
        "needs a cluster; tests/kubectl applies the chart",
    ),
    (
        "docs/operations.md",
        "helm upgrade pellucid",
        "needs a cluster; tests/webhook has the webhook behind an API",
    ),
    ("docs/operations.md", "pellucid shadow", "needs another scheduler; tests/core and tests/app have one"),
    ("docs/operations.md", "helm upgrade pellucid", "needs a cluster; tests/kubectl applies the chart"),
    ("docs/diagnostics.md", "PELLUCID_TRUTH_SEEDS=3000", "takes the better part of an hour"),
    ("docs/security.md", "pellucid run --secure-port", "needs certificates: tests/security makes some"),
    (
        "docs/security.md",
        "pellucid pod default/web --server",
        "needs a scheduler with users: tests/security has one",
    ),
    ("docs/writing-a-plugin.md", "cargo run -- sandbox", "a scheduler of its own: tests/examples runs it"),
    ("docs/writing-a-plugin.md", "curl -s -X PUT", "a scheduler of its own: tests/examples runs it"),
    ("docs/writing-a-plugin.md", "cargo run -- sandbox", "a scheduler of its own: tests/examples runs it"),
    ("docs/writing-a-plugin.md", "sed '/^---/", "a scheduler of its own: tests/examples runs it"),
    ("docs/writing-a-plugin.md", "for pod in", "a scheduler of its own: tests/examples runs it"),
    ("docs/writing-a-plugin.md", "kill -9", "ends a process; tests/examples does the same 200 times"),
];
