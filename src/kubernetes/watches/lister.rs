//! Lists a kind beside its watch, page by page and with pauses, for whoever compares what the watch has brought.
//!
//! Nothing of it reaches the scheduling thread. A kind that differs is listed again by its own watch
//! ([`Watches::list_again`](crate::watches::inputs::Watches::list_again)), so that a list never overtakes an event.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pellucid_cluster::input::Input;
use pellucid_model::Name;
use pellucid_model::collections::FxHashMap;

use crate::decode::Decoder;
use crate::kinds::{Kind, path};
use crate::watches::inputs;
use crate::watches::list::{Listing, PageSize};
use crate::watches::list_items::ListError;
use crate::watches::reader::Reader;
use crate::watches::served::Served;

/// Pause between two pages: at most 20 pages a second, so that watches and other clients come first.
const BETWEEN_PAGES: Duration = Duration::from_millis(50);

/// A complete list of a kind.
pub struct Listed {
    /// The list, as a watch sends it after it has listed again.
    pub list: Input,
    /// `resourceVersion` of each object in it, by namespace and name.
    pub versions: FxHashMap<(Name, Arc<str>), Arc<str>>,
}

/// Lists kinds.
#[derive(Clone)]
pub struct Lister {
    reader: Reader,
    decoder: Decoder,
    served: Arc<Served>,
}

impl Lister {
    pub(crate) fn new(reader: Reader, decoder: Decoder, served: Arc<Served>) -> Self {
        Self { reader, decoder, served }
    }

    /// Lists a kind; `None` when the API server does not serve it. An error says why a page could not be read; none is
    /// tried twice.
    pub fn list(&self, kind: Kind) -> BoxFuture<'_, Result<Option<Listed>, String>> {
        Box::pin(self.list_inner(kind))
    }

    async fn list_inner(&self, kind: Kind) -> Result<Option<Listed>, String> {
        let resource = match kind.resource().is_discovered {
            true => {
                self.served.locate(&self.reader, kind).await.map_err(|e| format!("discovery failed: {e}"))?
            }
            false => Some(kind.api_resource()),
        };
        let Some(resource) = resource else { return Ok(None) };
        let path = path(&resource);
        let mut listing = Listing::default();
        let mut page_size = PageSize(self.reader.limits.first_page);
        let mut versions = FxHashMap::default();
        loop {
            let take = |listing: &mut Listing, item: &[u8]| {
                let item =
                    self.decoder.with(|| kind.read(item)).map_err(|e| ListError::Item(e.to_string()))?;
                versions.insert((item.namespace, item.name), item.resource_version);
                match item.object {
                    Ok(object) if inputs::is_listed(&object) => listing.objects.push(object),
                    Ok(_) => {}
                    Err(quarantined) => listing.quarantined.push(quarantined),
                }
                Ok(())
            };
            let read = listing.read_page(&self.reader, &path, &mut page_size, take, || ()).await;
            if read.map_err(|error| format!("list failed: {error}"))?.is_some() {
                break;
            }
            tokio::time::sleep(BETWEEN_PAGES).await;
        }
        let list = inputs::reset(kind, listing.objects, listing.quarantined);
        Ok(Some(Listed { list, versions }))
    }
}
