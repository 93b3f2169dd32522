//! Lists: which objects they contain, at which revision, and what a client selected.

use std::sync::Arc;

use serde_json::json;

use crate::api::Api;
use crate::errors::{ApiError, ApiResult};
use crate::kinds::registry::Kind;
use crate::options::Options;
use crate::requests::paging::ContinueToken;
use crate::selectors::{FieldSelector, LabelSelector};
use crate::store::{Object, Page};

/// The objects that a request selects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// The namespace, empty for all namespaces.
    pub namespace: Arc<str>,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    /// Parses the selectors of a request.
    pub(crate) fn new(kind: &Kind, namespace: &str, options: &Options) -> ApiResult<Self> {
        Ok(Self {
            namespace: namespace.into(),
            labels: LabelSelector::parse(&options.labels)?,
            fields: FieldSelector::parse(&options.fields, |label| kind.field_position(label))?,
        })
    }

    /// Returns whether there are no label or field selectors.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Returns whether an object is selected.
    pub(crate) fn has(&self, object: &Object) -> bool {
        let is_here = self.namespace.is_empty() || object.key.0 == self.namespace;
        is_here && self.labels.matches(&object.labels) && self.fields.matches(&object.fields)
    }
}

/// A list of objects with its metadata.
pub(crate) struct Listed {
    pub items: Vec<Arc<Object>>,
    /// The `metadata` of the list.
    pub metadata: serde_json::Value,
}

impl Api {
    /// Lists the selected objects, or one page of them if the client requested pages.
    pub(crate) fn list(&self, kind: &Kind, selection: &Selection, options: &Options) -> ApiResult<Listed> {
        let token = match options.continue_token.as_str() {
            "" => None,
            text => Some(ContinueToken::decode(text)?),
        };
        let page = self.page(kind, selection, options, token.as_ref())?;
        let is_after = |object: &Arc<Object>| token.as_ref().is_none_or(|token| object.key > token.after);
        let mut items: Vec<Arc<Object>> =
            page.items.into_iter().filter(|object| is_after(object) && selection.has(object)).collect();
        let mut metadata = json!({"resourceVersion": page.revision.to_string()});
        // A list from the cache (`resourceVersion=0`) is never paged.
        let limit = if options.revision == "0" && token.is_none() { 0 } else { options.limit };
        if limit > 0 && items.len() > limit {
            let left = items.len() - limit;
            items.truncate(limit);
            let after = items[limit - 1].key.clone();
            metadata["continue"] = ContinueToken { revision: Some(page.revision), after }.encode().into();
            if selection.is_everything() {
                metadata["remainingItemCount"] = left.into();
            }
        }
        Ok(Listed { items, metadata })
    }

    fn page(
        &self,
        kind: &Kind,
        selection: &Selection,
        options: &Options,
        token: Option<&ContinueToken>,
    ) -> ApiResult<Page> {
        if let Some(token) = token {
            let Some(revision) = token.revision else {
                return Ok(self.store.list(&kind.storage, &selection.namespace));
            };
            let at = self.store.list_at(&kind.storage, &selection.namespace, revision, Some(&token.after));
            return at.ok_or_else(|| {
                let mut error = ApiError::expired(
                    "The provided continue parameter is too old to display a consistent list result. You can start a \
                     new list without the continue parameter, or use the continue token in this response to retrieve \
                     the remainder of the results. Continuing with the provided token results in an inconsistent list \
                     - objects that were created, modified, or deleted between the time the first chunk was returned \
                     and now may show up in the list.",
                );
                error.continue_token = Some(ContinueToken { revision: None, after: token.after.clone() }.encode());
                error
            });
        }
        let wanted = revision(&options.revision)?;
        let current = self.store.revision();
        if wanted > current {
            return Err(ApiError::too_new(wanted, current));
        }
        if options.revision_match == "Exact" && wanted > 0 {
            let at = self.store.list_at(&kind.storage, &selection.namespace, wanted, None);
            let why = "The resourceVersion for the provided list is too old.";
            return at.ok_or_else(|| ApiError::expired(why));
        }
        Ok(self.store.list(&kind.storage, &selection.namespace))
    }
}

/// Parses a `resourceVersion` parameter; an empty one is 0.
pub(crate) fn revision(text: &str) -> ApiResult<u64> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        let why = format!("strconv.ParseUint: parsing \"{text}\": invalid syntax");
        ApiError::internal(format!("resourceVersion: Invalid value: \"{text}\": {why}"))
    })
}
