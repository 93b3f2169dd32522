//! Enums whose variants have names.

/// Declares an enum of variants without data, each with its name: `as_str` returns the name, `ALL` has the variants.
#[macro_export]
macro_rules! named {
    ($(#[$attribute:meta])* pub enum $type:ident {
        $($(#[$about:meta])* $variant:ident = $name:literal,)*
    }) => {
        $(#[$attribute])*
        pub enum $type {
            $($(#[$about])* $variant,)*
        }

        impl $type {
            /// All variants, in declaration order.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Returns the name.
            #[inline]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}
