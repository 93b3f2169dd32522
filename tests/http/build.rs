//! Routes that a server refuses, and addresses it refuses to listen on.

use std::net::SocketAddr;

use pellucid::http::{
    BuildError, Certificate, ClientCa, Kind, Limits, Param, Route, ServeError, Server, Tls,
};
use pellucid_api::rest::BodySchema;
use serde_json::Value;

use crate::http::site::{Fleet, Site, parts};

#[test]
fn only_loopback_is_listened_on_and_a_taken_port_is_named() {
    let site = Site::new();
    let server = Server::new(parts(Limits::default()).0).unwrap();
    let bind = |address: SocketAddr| site.runtime.block_on(server.bind(address)).map(|_| ()).unwrap_err();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:10251", "[::ffff:192.0.2.1]:0"] {
        let refused = bind(address.parse().unwrap());
        assert!(matches!(refused, ServeError::NotLoopback { .. }), "{refused:?}");
        assert!(refused.to_string().contains("needs TLS, which --secure-port serves"));
        let names = Certificate::SelfSigned { names: vec!["localhost".to_owned()] };
        let tls = Tls::new(names, ClientCa::default()).unwrap();
        let unasked =
            site.runtime.block_on(server.bind_tls(address.parse().unwrap(), tls)).map(|_| ()).unwrap_err();
        assert!(
            matches!(unasked, ServeError::NotLoopback { .. }),
            "TLS that asks nobody who they are: {unasked:?}"
        );
    }
    let taken = bind(site.address);
    assert!(matches!(taken, ServeError::InUse { .. }), "{taken:?}");
    assert!(taken.to_string().contains(&site.address.to_string()));
}

#[test]
fn registrations_that_contradict_each_other_are_refused() {
    mod other {
        #[derive(utoipa::ToSchema)]
        #[allow(dead_code)]
        pub(super) struct Node {
            pub(super) something_else: bool,
        }
    }
    let route =
        |path: &str| Route::<Fleet>::get(path, "t", "s", BodySchema::any(), |_, _, _| Ok(Value::Null));
    let word = |name: &str| Param::path(name, "d");
    let build = |added: Vec<Route<Fleet>>| {
        let (mut parts, ..) = parts(Limits::default());
        parts.routes.extend(added);
        Server::new(parts).map(|_| ())
    };
    for (added, expected) in [
        (route("nodes"), "must begin with /"),
        (route("/a//b"), "segments are"),
        (route("/a/{b}"), "segments are"),
        (route("/a/:b"), "parameter `b` is not declared"),
        (route("/a").param(word("b")), "parameter `b` is not in the template"),
        (
            route("/a").param(Param::query("format", Kind::String, "d")),
            "parameter `format` is declared twice",
        ),
        (route("/apis/v1/nodes/:other").param(word("other")), "registered twice"),
        (route("/livez"), "registered twice"),
    ] {
        let error = build(vec![added]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error} does not say {expected}");
    }
    let mut clash = route("/a");
    clash.body = BodySchema::of::<other::Node>();
    assert!(matches!(build(vec![clash]).unwrap_err(), BuildError::SchemaName { name } if name == "Node"));
    // Different parameter names at one position do not conflict as long as the rest of the path differs.
    build(vec![route("/a/:b/c").param(word("b")), route("/a/:d/e").param(word("d"))]).unwrap();
}
