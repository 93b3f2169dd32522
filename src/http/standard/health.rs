//! `/livez`, `/readyz` and `/healthz`, with the text format of Kubernetes.
//!
//! Checks run on the thread that serves the connection, so that a full pool does not make a live process look dead. So
//! they must be fast: look at a flag or a clock.

use std::sync::Arc;

use http::StatusCode;

use crate::registration::endpoint::{Answered, Call, Endpoint, answer};
use crate::registration::need::Need;
use crate::registration::operation::{Answer, Content, Operation};
use crate::registration::params::{Kind, Param};

/// Returns whether a component is healthy; the error says what is wrong.
pub type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// A named health check and the endpoints that include it.
#[derive(Clone)]
pub struct HealthCheck {
    /// Name in the response, such as with `?verbose`.
    pub name: String,
    /// Whether its failure means that the process should be restarted (`/livez`, `/healthz`), and not only that it
    /// should not be relied on now (`/readyz`).
    pub live: bool,
    /// The check itself. It must not block.
    pub check: Check,
}

impl HealthCheck {
    /// Creates a check for liveness, which also counts for readiness.
    pub fn live(name: &str, check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { name: name.to_owned(), live: true, check: Arc::new(check) }
    }

    /// Creates a check for readiness only.
    pub fn ready(name: &str, check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { live: false, ..Self::live(name, check) }
    }
}

struct Probe {
    name: &'static str,
    summary: &'static str,
    asks: fn(&HealthCheck) -> bool,
}

static PROBES: [Probe; 3] = [
    Probe { name: "healthz", summary: "Whether the process is well (as /livez)", asks: |check| check.live },
    Probe { name: "livez", summary: "Whether the process is alive", asks: |check| check.live },
    Probe { name: "readyz", summary: "Whether the process can be relied on now", asks: |_| true },
];

impl Probe {
    fn operation(&self) -> Operation {
        let path = format!("/{}", self.name);
        let mut operation = Operation::standard(&path, "health", self.summary, Content::PLAIN);
        operation.params.push(Param::query("verbose", Kind::Boolean, "List every check").example("true"));
        operation.add(Answer {
            status: 503,
            description: "A check failed; the text lists all",
            contents: vec![Content::PLAIN],
        });
        operation.needing(Need::Nothing)
    }
}

pub(crate) fn operations() -> Vec<Operation> {
    PROBES.iter().map(Probe::operation).collect()
}

pub(crate) fn endpoints(checks: &Arc<[HealthCheck]>) -> Vec<Endpoint> {
    let endpoint = |probe: &'static Probe| {
        let checks = Arc::clone(checks);
        Endpoint::new(probe.operation(), move |call| {
            let answered = look(probe, &checks, &call);
            async move { answered }
        })
    };
    PROBES.iter().map(endpoint).collect()
}

fn look(probe: &Probe, checks: &[HealthCheck], call: &Call) -> Answered {
    let verbose = call.params.boolean("verbose")?.unwrap_or(false);
    let mut lines = String::from("[+]ping ok\n");
    let mut well = true;
    for check in checks.iter().filter(|check| (probe.asks)(check)) {
        let outcome = (check.check)();
        well &= outcome.is_ok();
        lines += &match outcome {
            Ok(()) => format!("[+]{} ok\n", check.name),
            // One line per check, whatever the reason contains.
            Err(why) => format!("[-]{} failed: {}\n", check.name, why.replace(char::is_control, " ")),
        };
    }
    let text = match (well, verbose) {
        (true, false) => "ok".to_owned(),
        (true, true) => format!("{lines}{} check passed\n", probe.name),
        (false, _) => format!("{lines}{} check failed\n", probe.name),
    };
    let mut response = answer("text/plain; charset=utf-8", text);
    if !well {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    Ok(response)
}
