//! Decodes Koordinator's gang annotations, on a pod or on a PodGroup.
//!
//! An unusable value does not quarantine the object: it becomes a problem of the gang, and a default is used.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pellucid_api::keys::koordinator as key;
use pellucid_model::gang::{GangMode, GangProblem, GangTerms, MatchPolicy};
use pellucid_model::{GangKey, duration};

use crate::decode::lenient::{Fault, Lenient};
use crate::decode::wire;

/// Where on an object a gang value was found. Its `Display` is the field path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At {
    /// In the label with this key.
    Label(&'static str),
    /// In the annotation with this key.
    Annotation(&'static str),
    /// In the field with this path.
    Field(&'static str),
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label(key) => write!(f, "metadata.labels[{key}]"),
            Self::Annotation(key) => write!(f, "metadata.annotations[{key}]"),
            Self::Field(path) => f.write_str(path),
        }
    }
}

/// Creates a problem that keeps the gang from being scheduled.
pub(crate) fn fatal(at: At, value: &str, problem: impl Into<Arc<str>>) -> GangProblem {
    GangProblem { field: at.to_string().into(), value: value.into(), problem: problem.into(), is_fatal: true }
}

/// Creates a problem for which a default is used.
pub(crate) fn warning(at: At, value: &str, problem: impl Into<Arc<str>>) -> GangProblem {
    GangProblem { is_fatal: false, ..fatal(at, value, problem) }
}

/// The gang annotations of one object.
#[derive(Clone, Copy)]
pub(crate) struct Annotations<'a>(&'a [(&'static str, Lenient<Arc<str>>)]);

impl<'a> Annotations<'a> {
    /// Returns the gang annotations of an object. An annotation that is no text is a fault of the object, as for
    /// labels.
    pub(crate) fn of(meta: &'a wire::Meta) -> Result<Self, Fault> {
        let known = meta.annotations.read("metadata.annotations")?;
        let all = known.map_or(&[][..], |known| &known.gang);
        for (key, value) in all {
            value.read("").map_err(|fault| fault.under(&At::Annotation(key).to_string()))?;
        }
        Ok(Self(all))
    }

    /// Returns whether the object has no gang annotation.
    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value of an annotation.
    pub(crate) fn get(self, key: &str) -> Option<&'a Arc<str>> {
        self.0.iter().find(|(known, _)| *known == key).and_then(|(_, value)| value.good())
    }
}

/// Reads the terms of a gang from Koordinator's annotations, except name and quorum; `min` is the quorum, if known.
pub(crate) fn koordinator(
    all: Annotations<'_>,
    own: &GangKey,
    min: Option<u32>,
    problems: &mut Vec<GangProblem>,
) -> GangTerms {
    let policy_key =
        if all.get(key::MATCH_POLICY).is_some() { key::MATCH_POLICY } else { key::MATCH_POLICY_ALIAS };
    let no_policy = "none of only-waiting, waiting-and-running, once-satisfied; the default is taken";
    let mut read = Reader { all, problems };
    GangTerms {
        min,
        total: read.total(min),
        mode: read.word(key::MODE, mode, "neither Strict nor NonStrict, Strict is taken"),
        policy: read.word(policy_key, policy, no_policy),
        wait: read.word(key::WAITING_TIME, wait, "not a duration above zero, the default is taken"),
        groups: read.groups(own),
    }
}

struct Reader<'a, 'p> {
    all: Annotations<'a>,
    problems: &'p mut Vec<GangProblem>,
}

impl Reader<'_, '_> {
    /// Parses a value. Records a warning and returns `None`, for the default, when it is unknown.
    fn word<T>(&mut self, key: &'static str, read: fn(&str) -> Option<T>, problem: &str) -> Option<T> {
        let text = self.all.get(key)?;
        let value = read(text);
        if value.is_none() {
            self.problems.push(warning(At::Annotation(key), text, problem));
        }
        value
    }

    /// Reads the number of all members, which is at least the quorum.
    fn total(&mut self, min: Option<u32>) -> Option<u32> {
        let text = self.all.get(key::TOTAL_NUMBER)?;
        let problem = match (text.parse::<u32>(), min) {
            (Ok(total), Some(min)) if total < min => format!("below the quorum of {min}, which is taken"),
            (Ok(total), _) => return Some(total),
            (Err(_), _) => "not a number of members, the quorum is taken".to_owned(),
        };
        self.problems.push(warning(At::Annotation(key::TOTAL_NUMBER), text, problem));
        min
    }

    /// Reads the gangs that reach their quorum together, including this one; empty when it is alone.
    fn groups(&mut self, own: &GangKey) -> Arc<[GangKey]> {
        let problem = "not a JSON list of \"namespace/name\", the gang stands alone";
        let Some(mut groups) = self.word(key::GROUPS, groups, problem) else { return Arc::default() };
        groups.push(own.clone());
        groups.sort();
        groups.dedup();
        if groups.len() == 1 { Arc::default() } else { groups.into() }
    }
}

fn mode(text: &str) -> Option<GangMode> {
    [GangMode::Strict, GangMode::NonStrict].into_iter().find(|mode| mode.as_str() == text)
}

fn policy(text: &str) -> Option<MatchPolicy> {
    let all = [MatchPolicy::OnlyWaiting, MatchPolicy::WaitingAndRunning, MatchPolicy::OnceSatisfied];
    all.into_iter().find(|policy| policy.as_str() == text)
}

fn wait(text: &str) -> Option<Duration> {
    duration::parse(text).filter(|wait| !wait.is_zero())
}

fn groups(text: &str) -> Option<Vec<GangKey>> {
    let names: Vec<String> = serde_json::from_str(text).ok()?;
    names.iter().map(|name| gang_key(name)).collect()
}

fn gang_key(text: &str) -> Option<GangKey> {
    let (namespace, name) = text.split_once('/')?;
    let is_whole = !namespace.is_empty() && !name.is_empty() && !name.contains('/');
    is_whole.then(|| GangKey::new(namespace, name))
}
