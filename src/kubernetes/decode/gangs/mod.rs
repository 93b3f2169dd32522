//! Reads what pods and PodGroups say about gangs in labels and annotations. The other fields of PodGroups are read in
//! `kinds::gangs`.

pub(crate) mod declaration;
pub(crate) mod terms;
