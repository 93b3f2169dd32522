//! A reference to the schema of a body, without its type.
//!
//! Pure rooms declare the bodies of their endpoints with `BodySchema::of::<T>()` and never name the schema library. A
//! reference holds only function pointers: declaring costs nothing, and the schema is made when the OpenAPI document is
//! written.

use std::borrow::Cow;

use utoipa::ToSchema;
use utoipa::openapi::schema::{AdditionalProperties, Schema, SchemaType};
use utoipa::openapi::{ArrayBuilder, ObjectBuilder, Ref, RefOr};

/// Schemas by name, as the OpenAPI document lists them under its components.
type Named = Vec<(String, RefOr<Schema>)>;

/// Describes a JSON body: one named type, a list or a map of it, or anything at all.
#[derive(Clone, Copy, Debug)]
pub struct BodySchema {
    shape: Shape,
    name: fn() -> Cow<'static, str>,
    own: fn() -> RefOr<Schema>,
    referenced: fn(&mut Named),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    One,
    List,
    Map,
    Any,
}

impl BodySchema {
    /// Describes a body that is one `T`. For lists and maps use [`Self::list_of`] and [`Self::map_of`].
    pub const fn of<T: ToSchema>() -> Self {
        Self { shape: Shape::One, name: T::name, own: T::schema, referenced: T::schemas }
    }

    /// Describes a body that is an array of `T`.
    pub const fn list_of<T: ToSchema>() -> Self {
        Self { shape: Shape::List, ..Self::of::<T>() }
    }

    /// Describes a body that is an object whose values are `T`.
    pub const fn map_of<T: ToSchema>() -> Self {
        Self { shape: Shape::Map, ..Self::of::<T>() }
    }

    /// Describes a body of which nothing is promised but that it is JSON.
    pub const fn any() -> Self {
        Self { shape: Shape::Any, ..Self::of::<serde_json::Value>() }
    }

    /// Returns the name of the type in the components, or of the item type of a list or map.
    pub fn name(&self) -> String {
        (self.name)().into_owned()
    }

    /// Returns the schema of the body; named types are references into [`Self::components`].
    pub fn schema(&self) -> RefOr<Schema> {
        let item = || RefOr::Ref(Ref::from_schema_name(self.name()));
        match self.shape {
            Shape::One => item(),
            Shape::List => ArrayBuilder::new().items(item()).into(),
            Shape::Map => {
                ObjectBuilder::new().additional_properties(Some(AdditionalProperties::RefOr(item()))).into()
            }
            Shape::Any => ObjectBuilder::new().schema_type(SchemaType::AnyValue).into(),
        }
    }

    /// Returns every named schema that the body needs, sorted by name, each once.
    ///
    /// Two types of one name but different content are both returned: whoever collects them must refuse that.
    pub fn components(&self) -> Vec<(String, RefOr<Schema>)> {
        let mut named = Vec::new();
        if self.shape != Shape::Any {
            named.push((self.name(), (self.own)()));
            (self.referenced)(&mut named);
        }
        named.sort_by(|left, right| left.0.cmp(&right.0));
        named.dedup();
        named
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(ToSchema)]
    #[allow(dead_code)]
    struct Leaf {
        size: u64,
    }

    #[derive(ToSchema)]
    #[allow(dead_code)]
    struct Tree {
        leaves: Vec<Leaf>,
        best: Option<Leaf>,
    }

    #[test]
    fn components_hold_the_type_and_what_it_refers_to_once() {
        let body = BodySchema::of::<Tree>();
        let names: Vec<String> = body.components().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["Leaf", "Tree"]);
        assert_eq!(serde_json::to_value(body.schema()).unwrap()["$ref"], "#/components/schemas/Tree");
    }

    #[test]
    fn lists_and_maps_refer_to_their_item() {
        let list = serde_json::to_value(BodySchema::list_of::<Leaf>().schema()).unwrap();
        assert_eq!(list["items"]["$ref"], "#/components/schemas/Leaf");
        let map = serde_json::to_value(BodySchema::map_of::<Leaf>().schema()).unwrap();
        assert_eq!(map["additionalProperties"]["$ref"], "#/components/schemas/Leaf");
        assert!(BodySchema::any().components().is_empty());
    }
}
