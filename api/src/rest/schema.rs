//! A reference to the schema of a body, without its type.
//!
//! Pure rooms declare the bodies of their endpoints with `BodySchema::of::<T>()` and never name the schema library. A
//! reference holds only a type's id and function pointers: declaring costs nothing, and the schema is made when the OpenAPI document is
//! written.

use std::any::TypeId;
use std::borrow::Cow;

use utoipa::openapi::schema::{AdditionalProperties, Schema, SchemaType};
use utoipa::openapi::{AllOfBuilder, ArrayBuilder, ObjectBuilder, Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::Meta;

/// Schemas by name, as the OpenAPI document lists them under its components.
type Named = Vec<(String, RefOr<Schema>)>;

/// Describes a JSON body: one named type, a list or a map of it, or anything at all.
#[derive(Clone, Copy, Debug)]
pub struct BodySchema {
    shape: Shape,
    /// Whether the object has a `meta` beside the fields of its type.
    has_meta: bool,
    of: TypeId,
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
    pub const fn of<T: ToSchema + 'static>() -> Self {
        Self {
            shape: Shape::One,
            has_meta: false,
            of: TypeId::of::<T>(),
            name: T::name,
            own: T::schema,
            referenced: T::schemas,
        }
    }

    /// Describes a body that is an array of `T`.
    pub const fn list_of<T: ToSchema + 'static>() -> Self {
        Self { shape: Shape::List, ..Self::of::<T>() }
    }

    /// Describes a body that is an object whose values are `T`.
    pub const fn map_of<T: ToSchema + 'static>() -> Self {
        Self { shape: Shape::Map, ..Self::of::<T>() }
    }

    /// Describes a body of which nothing is promised but that it is JSON.
    pub const fn any() -> Self {
        Self { shape: Shape::Any, ..Self::of::<serde_json::Value>() }
    }

    /// Describes the same object with a [`Meta`], which is added when it is served, unless its type has one.
    pub fn with_meta(self) -> Self {
        Self { has_meta: true, ..self }
    }

    /// Returns the name of the type of a body that is one object of it.
    pub fn kind(&self) -> Option<String> {
        (self.shape == Shape::One).then(|| self.name())
    }

    /// Returns the name of the type in the components, or of the item type of a list or map.
    pub fn name(&self) -> String {
        (self.name)().into_owned()
    }

    /// Returns what bodies that need the same components have in common.
    pub fn family(&self) -> (TypeId, bool, bool) {
        (self.of, self.has_meta, self.shape == Shape::Any)
    }

    /// Returns whether the body has a `meta` that its type has not.
    fn adds_meta(&self) -> bool {
        let own = Self { has_meta: false, ..*self };
        self.has_meta && !own.fields().iter().any(|field| field == "meta")
    }

    /// Returns the names of the fields of a body that is an object, those of flattened parts included.
    pub fn fields(&self) -> Vec<String> {
        let (mut fields, components) = (Vec::new(), self.components());
        collect_fields(&(self.own)(), &components, &mut fields);
        fields
    }

    /// Returns the schema of the body; named types are references into [`Self::components`].
    pub fn schema(&self) -> RefOr<Schema> {
        let item = || RefOr::Ref(Ref::from_schema_name(self.name()));
        match self.shape {
            Shape::One if self.adds_meta() => {
                let meta = Ref::from_schema_name(Meta::name());
                let with = ObjectBuilder::new().property("meta", meta).required("meta");
                AllOfBuilder::new().item(item()).item(with).into()
            }
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
            if self.adds_meta() {
                named.push((Meta::name().into_owned(), Meta::schema()));
            }
            (self.referenced)(&mut named);
        }
        named.sort_by(|left, right| left.0.cmp(&right.0));
        named.dedup();
        named
    }
}

fn collect_fields(schema: &RefOr<Schema>, components: &Named, fields: &mut Vec<String>) {
    match schema {
        RefOr::T(Schema::Object(object)) => fields.extend(object.properties.keys().cloned()),
        RefOr::T(Schema::AllOf(parts)) => {
            parts.items.iter().for_each(|part| collect_fields(part, components, fields));
        }
        RefOr::Ref(of) => {
            let named = components.iter().find(|(name, _)| of.ref_location.ends_with(&format!("/{name}")));
            named.into_iter().for_each(|(_, schema)| collect_fields(schema, components, fields));
        }
        RefOr::T(_) => {}
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
