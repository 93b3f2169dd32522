//! Turns manifests as users keep them (JSON, YAML, several documents, Lists, workloads) into the question of a
//! simulation. Only what the question needs is checked; the scheduler validates the pods.

use anyhow::Context as _;
use serde_json::{Map, Value, json};

/// Most pods of one file: a scheduler accepts a quarter of a megabyte.
const MOST_PODS: u64 = 1000;
const NAMESPACED: [&str; 6] = ["Pod", "PodGroup", "Deployment", "ReplicaSet", "StatefulSet", "Job"];

/// Parses all documents of a JSON or YAML text. `name` identifies the text in errors.
///
/// # Errors
/// The text is neither.
pub fn documents(text: &str, name: &str) -> anyhow::Result<Vec<Value>> {
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        return Ok(vec![value]);
    }
    // In YAML 1.1 a node could not have the name `n`.
    let options = serde_saphyr::options! { strict_booleans: true };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
        .with_context(|| format!("reading {name} as YAML"))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// Returns the question: a single document without a kind is the question itself, everything else is manifests. Objects
/// without a namespace are put into `namespace`.
pub(crate) fn question(documents: Vec<Value>, name: &str, namespace: Option<&str>) -> anyhow::Result<Value> {
    if let [only] = documents.as_slice()
        && only.is_object()
        && only.get("kind").is_none()
    {
        return Ok(only.clone());
    }
    let mut question = Question::default();
    for (index, document) in documents.into_iter().enumerate() {
        let place = format!("{name}, document {}", index + 1);
        question.take(document, namespace).with_context(|| place)?;
    }
    anyhow::ensure!(!question.is_empty(), "{name} has no documents: nothing to simulate");
    Ok(question.into_value())
}

/// Returns whether an object may be of a plugin's kind: its group is neither Kubernetes' core nor one of the short ones.
fn is_of_plugin(object: &Value) -> bool {
    let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    group.contains('.') && !group.ends_with(".k8s.io") || group.ends_with(".sigs.k8s.io")
}

#[derive(Default)]
struct Question {
    pods: Vec<Value>,
    pod_groups: Vec<Value>,
    edits: Vec<Value>,
}

impl Question {
    fn take(&mut self, mut object: Value, namespace: Option<&str>) -> anyhow::Result<()> {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if NAMESPACED.contains(&kind.as_str()) {
            settle(&mut object, namespace)?;
        }
        match kind.as_str() {
            "" => {
                anyhow::bail!("it has no kind: it is neither a manifest nor, alone in its file, a question")
            }
            "Node" => self.edits.push(json!({ "addNode": object })),
            "Pod" => self.push_pod(object)?,
            "PodGroup" => self.pod_groups.push(object),
            "Deployment" | "ReplicaSet" | "StatefulSet" => {
                self.take_workload(&object, &kind, "/spec/replicas")?
            }
            "Job" => self.take_workload(&object, &kind, "/spec/parallelism")?,
            list if list.ends_with("List") => {
                let items = object.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take);
                for item in items.with_context(|| format!("{list} has no items"))? {
                    self.take(item, namespace)?;
                }
            }
            // Which kinds of plugins there are, the scheduler knows.
            _ if kind == "Queue" || is_of_plugin(&object) => {
                self.edits.push(json!({ "applyObject": object }))
            }
            other => anyhow::bail!(
                "kind {other} cannot be simulated; known are Pod, PodGroup, Node, Deployment, ReplicaSet, \
                 StatefulSet, Job, List, Queue, and the kinds of plugins, such as ElasticQuota"
            ),
        }
        Ok(())
    }

    /// Adds the pods that a workload would create.
    fn take_workload(&mut self, object: &Value, kind: &str, replicas: &str) -> anyhow::Result<()> {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let template = object.pointer("/spec/template");
        let template = template.with_context(|| format!("{kind} {name}: spec.template is missing"))?;
        let wanted = object.pointer(replicas);
        let field = replicas[1..].replace('/', ".");
        let count = match wanted {
            None => 1,
            Some(number) => number
                .as_u64()
                .with_context(|| format!("{kind} {name}: {field} is {number}, which is no count"))?,
        };
        anyhow::ensure!(count <= MOST_PODS, "{kind} {name}: {field} is {count}, more than {MOST_PODS}");
        for index in 0..count {
            let mut pod = template.clone();
            let fields = pod.as_object_mut();
            let fields = fields.with_context(|| format!("{kind} {name}: spec.template is no object"))?;
            fields.insert("apiVersion".to_owned(), "v1".into());
            fields.insert("kind".to_owned(), "Pod".into());
            let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
            let metadata = metadata.as_object_mut();
            let metadata =
                metadata.with_context(|| format!("{kind} {name}: spec.template.metadata is no object"))?;
            metadata.insert("name".to_owned(), format!("{name}-{index}").into());
            if let Some(namespace) = object.pointer("/metadata/namespace") {
                metadata.insert("namespace".to_owned(), namespace.clone());
            }
            self.push_pod(pod)?;
        }
        Ok(())
    }

    fn push_pod(&mut self, mut pod: Value) -> anyhow::Result<()> {
        anyhow::ensure!((self.pods.len() as u64) < MOST_PODS, "more than {MOST_PODS} pods");
        let index = self.pods.len();
        if let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut)
            && !metadata.contains_key("name")
            && let Some(stem) = metadata.get("generateName").and_then(Value::as_str).map(str::to_owned)
        {
            metadata.insert("name".to_owned(), format!("{stem}{index}").into());
        }
        self.pods.push(pod);
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.pods.is_empty() && self.pod_groups.is_empty() && self.edits.is_empty()
    }

    /// Returns the question, without empty fields.
    fn into_value(self) -> Value {
        let fields = [("pods", self.pods), ("podGroups", self.pod_groups), ("edits", self.edits)];
        let fields = fields.into_iter().filter(|(_, values)| !values.is_empty());
        Value::Object(fields.map(|(name, values)| (name.to_owned(), Value::Array(values))).collect())
    }
}

/// Puts an object without a namespace into `namespace`. Fails if it has another one.
fn settle(object: &mut Value, namespace: Option<&str>) -> anyhow::Result<()> {
    let Some(namespace) = namespace else { return Ok(()) };
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let metadata = metadata.with_context(|| format!("{kind}: metadata is missing"))?;
    match metadata.get("namespace").and_then(Value::as_str) {
        Some(given) if given != namespace => {
            let name = metadata.get("name").and_then(Value::as_str).unwrap_or("(no name)");
            anyhow::bail!("{kind} {name} is of namespace {given}, and --namespace says {namespace}")
        }
        Some(_) => Ok(()),
        None => {
            metadata.insert("namespace".to_owned(), namespace.into());
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str, namespace: Option<&str>) -> Result<Value, String> {
        let documents = documents(text, "f.yaml").map_err(|error| format!("{error:#}"))?;
        question(documents, "f.yaml", namespace).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn a_question_is_sent_as_it_is() {
        let text = "include: [a/b]\nedits:\n- removeNode: n1\n";
        assert_eq!(
            made(text, Some("x")).unwrap(),
            json!({"include": ["a/b"], "edits": [{"removeNode": "n1"}]})
        );
    }

    #[test]
    fn manifests_become_a_question() {
        let text = "kind: Pod\nmetadata: {name: a}\n---\nkind: PodGroup\nmetadata: {name: g, namespace: ns}\n---\n\
                    kind: List\nitems:\n- kind: Node\n  metadata: {name: n}\n- kind: Pod\n  metadata: {generateName: b-}\n";
        let body = made(text, Some("ns")).unwrap();
        assert_eq!(body["pods"][0]["metadata"], json!({"name": "a", "namespace": "ns"}));
        assert_eq!(body["pods"][1]["metadata"]["name"], "b-1");
        assert_eq!(body["podGroups"][0]["metadata"]["name"], "g");
        assert_eq!(body["edits"], json!([{"addNode": {"kind": "Node", "metadata": {"name": "n"}}}]));
        assert!(
            made("kind: Pod\nmetadata: {name: a}\n", None).unwrap()["pods"][0]["metadata"]["namespace"]
                .is_null()
        );
    }

    #[test]
    fn workloads_become_their_pods() {
        let text = "kind: Deployment\nmetadata: {name: web, namespace: ns}\nspec:\n  replicas: 2\n  template:\n    \
                    metadata: {labels: {app: web}}\n    spec: {containers: []}\n";
        let pods = made(text, None).unwrap()["pods"].clone();
        let expected = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": []},
            "metadata": {"name": "web-1", "namespace": "ns", "labels": {"app": "web"}}});
        assert_eq!((pods.as_array().unwrap().len(), &pods[1]), (2, &expected));
        let job = text.replace("Deployment", "Job").replace("replicas", "parallelism");
        assert_eq!(made(&job, None).unwrap()["pods"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn what_cannot_be_simulated_is_named() {
        for (text, part) in [
            ("", "f.yaml has no documents"),
            ("[]", "f.yaml, document 1: it has no kind"),
            ("kind: Service\n", "document 1: kind Service cannot be simulated; known are Pod,"),
            (
                "kind: Pod\nmetadata: {name: a, namespace: b}\n",
                "Pod a is of namespace b, and --namespace says ns",
            ),
            ("kind: Deployment\nmetadata: {name: a}\n", "Deployment a: spec.template is missing"),
            (
                "kind: Job\nmetadata: {name: a}\nspec: {parallelism: -1, template: {}}\n",
                "spec.parallelism is -1",
            ),
            ("kind: Job\nmetadata: {name: a}\nspec: {parallelism: 1001, template: {}}\n", "more than 1000"),
            ("kind: Pod\n---\na: [\n", "reading f.yaml as YAML"),
        ] {
            let said = made(text, Some("ns")).unwrap_err();
            assert!(said.contains(part), "{text:?}: {said}");
        }
    }
}
