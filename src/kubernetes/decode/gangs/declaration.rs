//! Decodes the gang of a pod from its labels, annotations and fields, in five dialects.
//!
//! Several keys may name the gang. Coscheduling's labels and Koordinator's annotation form one family: Koordinator
//! reads both, in the order used here, and they may appear together when they name the same gang. Any other two keys
//! contradict each other; this is recorded as a fatal problem and never resolved silently. `cluster::gangs` combines
//! the result with the PodGroup and the other members.

use std::sync::{Arc, LazyLock};

use pellucid_api::keys::{coscheduling, koordinator, kube_batch, unicore};
use pellucid_model::gang::{Dialect, GangDeclaration, GangProblem, GangTerms};
use pellucid_model::selector::Labels;
use pellucid_model::{GangKey, Name, Pod};

use crate::decode::fields::filled;
use crate::decode::gangs::terms::{Annotations, At, fatal, warning};
use crate::decode::lenient::Fault;
use crate::decode::wire;

/// The scheduler name whose pods get a shadow gang when they name no gang.
const KUBE_BATCH: &str = "kube-batch";
const POD_GROUP_NAME: &str = "spec.schedulingGroup.podGroupName";

/// The labels about gangs, interned once so that a pod's labels are compared by pointer.
static LABELS: LazyLock<[(Name, &'static str); 6]> = LazyLock::new(|| {
    [
        coscheduling::POD_GROUP,
        coscheduling::POD_GROUP_SIGS,
        coscheduling::NAME,
        coscheduling::MIN_AVAILABLE,
        unicore::NAME,
        unicore::AVAILABLE_COUNT,
    ]
    .map(|key| (Name::new(key), key))
});

/// One key of a pod that names a gang.
#[derive(Clone, Copy, Debug)]
struct Claim<'a> {
    dialect: Dialect,
    at: At,
    name: &'a str,
}

impl Claim<'_> {
    fn is_in_family(self) -> bool {
        matches!(self.dialect, Dialect::Coscheduling | Dialect::Koordinator)
    }

    /// Returns the problem when another key names a gang, too; `None` if both may appear together.
    fn contradiction(self, other: Self) -> Option<GangProblem> {
        let is_one_family = self.is_in_family() && other.is_in_family();
        let problem = match (self.name == other.name, is_one_family) {
            (true, true) => return None,
            (true, false) => "a gang of another dialect is named as well",
            (false, _) => "another gang is named as well",
        };
        Some(fatal(self.at, self.name, format!("{problem}, by {}: {}", other.at, other.name)))
    }
}

/// Everything on a pod about gangs.
struct Words<'a> {
    labels: &'a Labels,
    annotations: Annotations<'a>,
    scheduling_group: Option<&'a str>,
}

/// Adds gang and gang warning to a pod that is otherwise complete. Faults have the whole path.
pub(crate) fn add_gang(pod: &mut Pod, meta: &wire::Meta, spec: &wire::PodSpec) -> Result<(), Fault> {
    let annotations = Annotations::of(meta)?;
    let scheduling_group = spec
        .scheduling_group
        .within("spec.schedulingGroup", |group| filled(&group.pod_group_name, "podGroupName"))?;
    let has_label = pod.labels.iter().any(|(key, _)| LABELS.iter().any(|(known, _)| known == key));
    let is_of_kube_batch = pod.scheduler_name.as_str() == KUBE_BATCH;
    if !has_label && annotations.is_empty() && scheduling_group.is_none() && !is_of_kube_batch {
        return Ok(());
    }
    let labels = pod.labels.clone();
    let words = Words { labels: &labels, annotations, scheduling_group: scheduling_group.as_deref() };
    pod.gang_warning = words.half_a_unicore_gang().map(Arc::new);
    let mark = words.mark(pod).or_else(|| is_of_kube_batch.then(|| words.shadow(pod)));
    if mark.as_ref().is_some_and(|mark| mark.is_shadow) {
        Arc::make_mut(&mut pod.spec).has_shadow_group = true;
    }
    pod.gang = mark.map(Arc::new);
    Ok(())
}

impl<'a> Words<'a> {
    fn label(&self, key: &str) -> Option<&'a str> {
        let (label, _) = LABELS.iter().find(|(_, known)| *known == key)?;
        self.labels.get(label).map(Name::as_str)
    }

    fn annotation(&self, key: &str) -> Option<&'a str> {
        self.annotations.get(key).map(|text| &**text)
    }

    /// Returns all keys that name a gang, in order of precedence. Empty names are skipped.
    fn claims(&self) -> impl Iterator<Item = Claim<'a>> {
        use Dialect::{Coscheduling, Koordinator, KubeBatch, Native, Unicore};
        let label = |dialect, key| (dialect, At::Label(key), self.label(key));
        let annotation = |dialect, key| (dialect, At::Annotation(key), self.annotation(key));
        let mut unicore = label(Unicore, unicore::NAME);
        unicore.2 = unicore.2.filter(|_| self.label(unicore::AVAILABLE_COUNT).is_some());
        [
            label(Coscheduling, coscheduling::POD_GROUP),
            label(Coscheduling, coscheduling::POD_GROUP_SIGS),
            label(Coscheduling, coscheduling::NAME),
            annotation(Koordinator, koordinator::NAME),
            unicore,
            annotation(KubeBatch, kube_batch::GROUP_NAME),
            (Native, At::Field(POD_GROUP_NAME), self.scheduling_group),
        ]
        .into_iter()
        .filter_map(|(dialect, at, name)| Some(Claim { dialect, at, name: name.filter(|n| !n.is_empty())? }))
    }

    fn mark(&self, pod: &Pod) -> Option<GangDeclaration> {
        let mut claims = self.claims();
        let first = claims.next()?;
        let mut problems: Vec<_> = claims.filter_map(|other| first.contradiction(other)).collect();
        let names_two = !problems.is_empty();
        let gang = GangKey { namespace: pod.key.namespace.clone(), name: Name::new(first.name) };
        let (needs_group, terms) = match first.dialect {
            Dialect::Unicore => (false, self.unicore(&mut problems)),
            Dialect::Coscheduling | Dialect::Koordinator => self.family(first, &gang, &mut problems),
            Dialect::KubeBatch | Dialect::Native => (true, GangTerms::default()),
        };
        let (dialect, problems) = (first.dialect, problems.into());
        Some(GangDeclaration { gang, dialect, needs_group, is_shadow: false, names_two, terms, problems })
    }

    /// Reads the labels of scheduler-plugins and the annotations of Koordinator. Also returns whether a PodGroup is
    /// needed.
    fn family(&self, first: Claim<'_>, gang: &GangKey, problems: &mut Vec<GangProblem>) -> (bool, GangTerms) {
        let is_by_label = |key| matches!(first.at, At::Label(known) if known == key);
        let is_oldest = is_by_label(coscheduling::NAME);
        let in_label = self.label(coscheduling::MIN_AVAILABLE).filter(|_| is_oldest);
        let at = if in_label.is_some() {
            At::Label(coscheduling::MIN_AVAILABLE)
        } else {
            At::Annotation(koordinator::MIN_AVAILABLE)
        };
        let text = in_label.or_else(|| self.annotation(koordinator::MIN_AVAILABLE));
        // A gang named by the oldest label has its quorum on the pod; without one, a PodGroup must have it.
        let needs_group = first.dialect == Dialect::Coscheduling && (!is_oldest || text.is_none());
        let min = text.and_then(|text| text.parse::<u32>().ok());
        match (text, min, needs_group) {
            (None, _, false) => problems.push(fatal(at, "", "missing, so the gang has no quorum")),
            (Some(text), None, false) => problems.push(fatal(at, text, "not a number of members")),
            (Some(text), None, true) => {
                problems.push(warning(at, text, "not a number of members, the PodGroup's is taken"));
            }
            _ => {}
        }
        (needs_group, super::terms::koordinator(self.annotations, gang, min, problems))
    }

    fn unicore(&self, problems: &mut Vec<GangProblem>) -> GangTerms {
        let text = self.label(unicore::AVAILABLE_COUNT).unwrap_or_default();
        let min = text.parse::<u32>().ok().filter(|min| *min > 0);
        if min.is_none() {
            let at = At::Label(unicore::AVAILABLE_COUNT);
            problems.push(fatal(at, text, "not a number of members above zero"));
        }
        GangTerms { min, ..GangTerms::default() }
    }

    /// Returns a warning for a pod with only one of unicore's two labels, or an empty name: it is in no gang, perhaps
    /// by mistake.
    fn half_a_unicore_gang(&self) -> Option<GangProblem> {
        let missing = |key, problem: &str| Some(warning(At::Label(key), "", problem));
        match (self.label(unicore::NAME), self.label(unicore::AVAILABLE_COUNT)) {
            (None, Some(_)) => missing(unicore::NAME, "missing, so the pod is in no gang"),
            (Some(_), None) => missing(unicore::AVAILABLE_COUNT, "missing, so the pod is in no gang"),
            (Some(""), Some(_)) => missing(unicore::NAME, "empty, so the pod is in no gang"),
            _ => None,
        }
    }

    /// Returns the shadow gang of a kube-batch pod: with the other pods of its controller, or alone.
    fn shadow(&self, pod: &Pod) -> GangDeclaration {
        let owner = pod.controller.as_ref().map(|c| &c.uid).filter(|uid| !uid.is_empty());
        let gang =
            GangKey { namespace: pod.key.namespace.clone(), name: Name::new(owner.unwrap_or(&pod.uid)) };
        let mut problems = Vec::new();
        let text = self.annotation(kube_batch::GROUP_MIN_MEMBER);
        let min = text.and_then(|text| text.parse::<u32>().ok()).filter(|min| *min > 0);
        if let (Some(text), None) = (text, min) {
            let at = At::Annotation(kube_batch::GROUP_MIN_MEMBER);
            problems.push(warning(at, text, "not a number of members above zero, 1 is taken"));
        }
        GangDeclaration {
            gang,
            dialect: Dialect::KubeBatch,
            needs_group: false,
            is_shadow: true,
            names_two: false,
            terms: GangTerms { min: Some(min.unwrap_or(1)), ..GangTerms::default() },
            problems: problems.into(),
        }
    }
}
