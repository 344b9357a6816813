//! One request, taken apart as the API server's access rules see it.

use axum::http::{Method, Uri};
use serde_json::Value;

/// One request.
#[derive(Clone, Debug)]
pub struct Call {
    /// Whose client made it.
    pub who: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`.
    pub verb: &'static str,
    /// The API group; empty for the core.
    pub group: String,
    /// The resource with its subresource, such as `rabbitmqmigrations/status`.
    pub resource: String,
    /// The namespace; empty for what belongs to none.
    pub namespace: String,
    /// The object; empty for lists and creates.
    pub name: String,
    /// The query.
    pub query: String,
    /// The body; null where there is none.
    pub body: Value,
    /// Whether metadata alone was asked for.
    pub bare: bool,
    /// The answer's status code; 0 until it is given.
    pub code: u16,
}

impl Call {
    /// Takes a request apart.
    pub fn new(who: &str, method: &Method, uri: &Uri, body: Value) -> Self {
        let mut path: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
        let group = if path.remove(0) == "api" { String::new() } else { path.remove(0).to_owned() };
        let _version = path.remove(0);
        // `namespaces/x` is an object, `namespaces/x/pods` what lies in it.
        let mut namespace = "";
        if path.len() > 2 && path.first() == Some(&"namespaces") {
            path.remove(0);
            namespace = path.remove(0);
        }
        let mut rest = path.into_iter();
        let (plural, name) = (rest.next().unwrap_or_default(), rest.next().unwrap_or_default());
        let resource = rest.next().map_or_else(|| plural.to_owned(), |sub| format!("{plural}/{sub}"));
        let query = uri.query().unwrap_or_default().to_owned();
        let watches = query.split('&').any(|pair| pair == "watch=true");
        let verb = match *method {
            Method::GET if watches => "watch",
            Method::GET if name.is_empty() => "list",
            Method::GET => "get",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => panic!("{method} {uri} is not spoken here"),
        };
        Self {
            who: who.to_owned(),
            verb,
            group,
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            query,
            body,
            bare: false,
            code: 0,
        }
    }

    /// A parameter of the query, decoded.
    pub fn parameter(&self, key: &str) -> Option<String> {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(found, _)| *found == key).map(|(_, value)| decoded(value))
    }

    /// Whether it is on this resource of this object.
    pub fn is_on(&self, verb: &str, resource: &str) -> bool {
        self.verb == verb && self.resource == resource
    }

    /// Whether it changes something. Reviews of access are questions.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch") && !self.resource.ends_with("accessreviews")
    }

    /// `verb resource`, for lists in assertions.
    pub fn what(&self) -> String {
        format!("{} {}", self.verb, self.resource)
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = text.bytes();
    let mut plain = Vec::new();
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'+' => b' ',
            b'%' => {
                let hex: Vec<u8> = bytes.by_ref().take(2).collect();
                u8::from_str_radix(std::str::from_utf8(&hex).unwrap(), 16).unwrap()
            }
            other => other,
        });
    }
    String::from_utf8(plain).unwrap()
}
