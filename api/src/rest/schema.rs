//! A response type as a value.
/// A type-erased handle on a body type.
#[derive(Clone, Copy, Debug)]
pub struct BodySchema {
    /// Name of the schema.
    pub name: fn() -> std::borrow::Cow<'static, str>,
}
impl BodySchema {
    /// Makes the handle of a type.
    pub fn of<T: utoipa::ToSchema>() -> Self {
        Self { name: T::name }
    }
}
