//! A watch that delivers every event: none is dropped or merged, and a gap is an error.

use anyhow::Context;
use futures_util::stream::{BoxStream, StreamExt};
use kube::api::WatchEvent;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// An object as its watcher reads it.
pub trait Watched: Clone + DeserializeOwned + Send + 'static {
    /// Returns `metadata.resourceVersion`.
    fn revision(&self) -> Option<&str>;
}

impl Watched for Value {
    fn revision(&self) -> Option<&str> {
        self["metadata"]["resourceVersion"].as_str()
    }
}

/// Watches the objects at a path from its creation on, and reconnects when the server ends a watch.
pub struct ObjectWatch<T> {
    client: kube::Client,
    path: String,
    fields: &'static str,
    revision: String,
    stream: Option<BoxStream<'static, kube::Result<WatchEvent<T>>>>,
}

impl<T: Watched> ObjectWatch<T> {
    /// Opens a watch of the objects that a field selector selects, all if it is empty. Existing objects are delivered first.
    pub async fn open(client: kube::Client, path: &str, fields: &'static str) -> anyhow::Result<Self> {
        let mut watch = Self { client, path: path.into(), fields, revision: "0".into(), stream: None };
        watch.connect().await?;
        Ok(watch)
    }

    /// Returns the next object that changed, in its last state, and whether it was deleted. Cancel-safe: no event is
    /// lost when the call is dropped.
    pub async fn next(&mut self) -> anyhow::Result<(T, bool)> {
        loop {
            let Some(stream) = &mut self.stream else {
                self.connect().await?;
                continue;
            };
            let Some(event) = stream.next().await else {
                self.stream = None;
                continue;
            };
            let failed = || format!("the watch of {} is broken, so the checks are not complete", self.path);
            let (object, is_deleted) = match event.with_context(failed)? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                WatchEvent::Bookmark(bookmark) => {
                    self.revision = bookmark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(status) => {
                    let said = kube::Error::Api(status);
                    return Err(anyhow::Error::new(said).context(failed()));
                }
            };
            if let Some(revision) = object.revision() {
                self.revision = revision.to_owned();
            }
            return Ok((object, is_deleted));
        }
    }

    async fn connect(&mut self) -> anyhow::Result<()> {
        // Bookmarks keep a quiet connection from being taken for dead.
        let (path, fields, revision) = (&self.path, self.fields, &self.revision);
        let options = format!("watch=true&allowWatchBookmarks=true&resourceVersion={revision}");
        let uri = format!("{path}?{options}&fieldSelector={fields}");
        let request = http::Request::get(uri).body(Vec::new())?;
        let stream = self.client.request_events::<T>(request).await;
        let stream = stream.with_context(|| format!("cannot watch {}", self.path))?;
        self.stream = Some(stream.boxed());
        Ok(())
    }
}
