//! Reads lists in pages. Page sizes follow the size of earlier objects; objects are decoded one by one as they arrive.
//!
//! The API limits a page only by its number of objects, and a pod can have a megabyte. So a list begins with few
//! objects per page and requests more while objects are small. Large pages would not cost memory here (`list_items`
//! holds one raw object at a time), but moderate ones spare the server and arrive within the time limit.

use kube::core::Request;
use kube::core::params::ListParams;
use pellucid_cluster::input::Quarantined;
use tokio::time::timeout;

use crate::decode::Decoded;
use crate::watches::list_items::{ListError, ListItems};
use crate::watches::reader::{ReadError, Reader};

/// The objects of the pages read so far.
#[derive(Default)]
pub(crate) struct Listing {
    /// Readable objects.
    pub(crate) objects: Vec<Decoded>,
    /// Objects that cannot be decoded.
    pub(crate) quarantined: Vec<Quarantined>,
    /// The newest request to catch up when the list began, which its end fulfils.
    pub(crate) request: Option<u64>,
    /// `resourceVersion` of the first page, which is that of the list.
    version: String,
    /// `continue` token of the next page.
    token: Option<String>,
}

/// Number of objects to ask for in the next page. Adapts to the size of objects.
pub(crate) struct PageSize(pub(crate) u32);

impl PageSize {
    /// Adapts to a page: aims at `wanted` bytes, but at most doubles the number of objects.
    fn learn(&mut self, bytes: usize, count: usize, wanted: usize, most: u32) {
        if count == 0 {
            return;
        }
        let fitting = wanted / (bytes / count).max(1);
        let fitting = u32::try_from(fitting).unwrap_or(u32::MAX);
        self.0 = fitting.clamp(1, most).min(self.0.saturating_mul(2));
    }
}

impl Listing {
    /// Begins a list whose end fulfils a request to catch up.
    pub(crate) fn fulfilling(request: u64) -> Self {
        Self { request: Some(request), ..Self::default() }
    }

    /// Returns whether nothing of the list was read.
    pub(crate) fn is_new(&self) -> bool {
        self.version.is_empty()
    }

    /// Reads the next page. Returns the version once the list is complete. After an error, the same page can be read
    /// again.
    pub(crate) async fn read_page(
        &mut self,
        reader: &Reader,
        path: &str,
        size: &mut PageSize,
        mut take: impl FnMut(&mut Self, &[u8]) -> Result<(), ListError>,
        on_part: impl Fn(),
    ) -> Result<Option<String>, ReadError> {
        let (objects, quarantined) = (self.objects.len(), self.quarantined.len());
        let limits = &reader.limits;
        let reading = async {
            let mut items = ListItems::new(limits.object_bytes);
            let params = ListParams {
                limit: Some(size.0),
                continue_token: self.token.clone(),
                ..ListParams::default()
            };
            let mut body = open(reader, path, &params).await?;
            while let Some(part) = reader.part(&mut body).await? {
                on_part();
                items.feed(&part, |item| take(self, item))?;
            }
            size.learn(items.bytes, items.count, limits.page_bytes, limits.largest_page);
            Ok(items.finish()?)
        };
        let read = timeout(limits.list_answer + limits.page, reading).await;
        let meta = match read.unwrap_or(Err(ReadError::NoAnswer(limits.page))) {
            Ok(meta) => meta,
            Err(error) => {
                self.objects.truncate(objects);
                self.quarantined.truncate(quarantined);
                return Err(error);
            }
        };
        if self.version.is_empty() {
            self.version = meta.resource_version;
        }
        if meta.r#continue.is_empty() {
            return Ok(Some(std::mem::take(&mut self.version)));
        }
        self.token = Some(meta.r#continue);
        Ok(None)
    }
}

/// Returns the current `resourceVersion` of a kind.
pub(crate) async fn newest_version(reader: &Reader, path: &str) -> Result<String, ReadError> {
    let params = ListParams { limit: Some(1), ..ListParams::default() };
    let mut items = ListItems::new(reader.limits.object_bytes);
    let limit = reader.limits.list_answer;
    let reading = async {
        let mut body = open(reader, path, &params).await?;
        while let Some(part) = reader.part(&mut body).await? {
            items.feed(&part, |_| Ok(()))?;
        }
        Ok(items.finish()?.resource_version)
    };
    timeout(limit, reading).await.unwrap_or(Err(ReadError::NoAnswer(limit)))
}

async fn open(reader: &Reader, path: &str, params: &ListParams) -> Result<kube::client::Body, ReadError> {
    let request = Request::new(path).list(params).map_err(|e| ReadError::Unreadable(e.to_string()))?;
    reader.open(request, reader.limits.list_answer).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_grow_while_objects_are_small_and_shrink_at_once() {
        let mut size = PageSize(50);
        let mut learn = |bytes, count| {
            size.learn(bytes, count, 4 << 20, 500);
            size.0
        };
        let small = [learn(50 << 10, 50), learn(100 << 10, 100), learn(200 << 10, 200), learn(0, 0)];
        assert_eq!(small, [100, 200, 400, 400]);
        assert_eq!(learn(400 << 10, 400), 500);
        assert_eq!(learn(500 << 20, 500), 4);
        assert_eq!(learn(1 << 30, 4), 1);
        assert_eq!(learn(1 << 10, 1), 2);
    }
}
