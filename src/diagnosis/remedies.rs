//! What would help against reasons, and who can do it: by the registry, where pods that end would help and where not.

use pellucid_api::reason::{ReasonCode, Resolver};
use pellucid_api::rest::explain::ReasonBody;
use pellucid_framework::{Reason, bodies};

/// Returns what would help against some reasons, each text once, and who can do the first of it. The flag of a reason says
/// that it stands whichever pods leave.
pub(crate) fn remedies(
    reasons: impl Iterator<Item = (ReasonCode, bool)> + Clone,
) -> Option<(Vec<&'static str>, Resolver)> {
    let (code, never) = reasons.clone().next()?;
    let mut remedies = Vec::new();
    for (code, never) in reasons {
        let text = remedy(code, never);
        if !remedies.contains(&text) {
            remedies.push(text);
        }
    }
    Some((remedies, resolver(code, never)))
}

fn remedy(code: ReasonCode, never: bool) -> &'static str {
    let entry = code.entry();
    if never { entry.never } else { entry.remedy }
}

fn resolver(code: ReasonCode, never: bool) -> Resolver {
    let resolver = code.entry().resolver;
    if never { resolver.never() } else { resolver }
}

/// Returns the body of a reason, with the remedy for where no pod's end would help if `never`.
pub(crate) fn reason_body(reason: &Reason, never: bool) -> ReasonBody {
    let body = bodies::reason(reason);
    if !never {
        return body;
    }
    ReasonBody {
        remedy: remedy(reason.code, true).into(),
        resolver: resolver(reason.code, true).as_str().into(),
        ..body
    }
}
