//! An API server in the process: objects in memory with resourceVersion and uid, conflicts, watches, deletion
//! with finalizers, server-side apply as far as the operator uses it, and access by the roles in `deploy/base`.
//!
//! What it takes over from the real one: a write with a stale resourceVersion or another uid is refused with
//! 409, and a write that changes nothing makes no new version. Field managers do not conflict here.

pub mod call;
pub mod gate;
pub mod grants;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State as Given};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use call::Call;
use futures::stream;
use gate::Gate;
use grants::Grants;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// The namespace of the operator.
pub const HOME: &str = "rabbitmq-migration";

/// Where an object is: resource, namespace, name. Groups share no plural here but for events.
type Place = (String, String, String);

/// What happened to an object, in order.
#[derive(Clone)]
struct Happening {
    version: u64,
    what: &'static str,
    place: Place,
    object: Value,
}

#[derive(Default)]
struct Store {
    version: u64,
    uids: u64,
    objects: BTreeMap<Place, Value>,
    happenings: Vec<Happening>,
    calls: Vec<Call>,
    grants: Grants,
}

/// The server.
pub struct Server {
    store: Mutex<Store>,
    changed: watch::Sender<u64>,
}

/// One client's way to the server.
#[derive(Clone)]
struct Door {
    server: Arc<Server>,
    gate: Arc<Gate>,
    who: String,
}

/// An answer that is no object.
struct Refusal(u16, String);

impl Server {
    /// An empty one that grants what is shipped.
    pub fn new() -> Arc<Self> {
        let store = Store { grants: Grants::shipped(), ..Store::default() };
        Arc::new(Self { store: Mutex::new(store), changed: watch::channel(0).0 })
    }

    /// A client with its gate.
    pub fn client(self: &Arc<Self>, who: &str) -> (kube::Client, Arc<Gate>) {
        let gate = Arc::new(Gate::new());
        let door = Door { server: self.clone(), gate: gate.clone(), who: who.to_owned() };
        let router = Router::new().fallback(answer).with_state(door);
        (kube::Client::new(router, "default"), gate)
    }

    /// Puts an object where it belongs, as somebody else would; makes it or changes it.
    pub fn put(&self, resource: &str, object: Value) -> Value {
        let place = place_of(resource, &object);
        let mut store = self.store.lock().unwrap();
        let object = match store.objects.get(&place).cloned() {
            Some(old) => store.store(&place, &old, object),
            None => store.make(&place, object),
        };
        drop(store);
        self.tell();
        object
    }

    /// Changes an object as somebody else would.
    pub fn change(&self, resource: &str, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let mut object = self.get(resource, namespace, name).unwrap();
        change(&mut object);
        self.put(resource, object);
    }

    /// An object.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let place = (resource.to_owned(), namespace.to_owned(), name.to_owned());
        self.store.lock().unwrap().objects.get(&place).cloned()
    }

    /// All objects of a resource.
    pub fn all(&self, resource: &str) -> Vec<Value> {
        let store = self.store.lock().unwrap();
        store
            .objects
            .iter()
            .filter(|((kind, ..), _)| kind == resource)
            .map(|(_, object)| object.clone())
            .collect()
    }

    /// All requests so far, in the order in which they were carried out.
    pub fn calls(&self) -> Vec<Call> {
        self.store.lock().unwrap().calls.clone()
    }

    /// Forgets the requests so far.
    pub fn forget_calls(&self) {
        self.store.lock().unwrap().calls.clear();
    }

    /// Takes away or gives back `verb resource`.
    pub fn deny(&self, what: &[&str]) {
        self.store.lock().unwrap().grants.denied = what.iter().map(|what| (*what).to_owned()).collect();
    }

    /// Binds what is for namespaces of migrations in this one alone.
    pub fn bind_in(&self, namespace: &str) {
        self.store.lock().unwrap().grants.bound_in = Some(namespace.to_owned());
    }

    /// Waits until the calls and objects are as `is_so` says.
    pub async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        let mut changed = self.changed.subscribe();
        while !is_so(self) {
            changed.changed().await.unwrap();
        }
    }

    fn tell(&self) {
        self.changed.send_modify(|times| *times += 1);
    }

    fn serve(self: &Arc<Self>, mut call: Call, headers: &Headers) -> Response {
        let mut store = self.store.lock().unwrap();
        let outcome = if store.grants.allow(&call, HOME) && store.grants.holds_what_it_gives(&call, HOME) {
            store.carry_out(&call, headers)
        } else {
            let refused = format!("{} {} is forbidden", call.verb, call.resource);
            Err(Refusal(403, refused))
        };
        let response = match outcome {
            Ok(_) if call.verb == "watch" => {
                call.code = 200;
                self.clone().stream(&call, headers)
            }
            Ok(object) => {
                call.code = if call.verb == "create" { 201 } else { 200 };
                json_response(call.code, &object)
            }
            Err(Refusal(code, message)) => {
                call.code = code;
                json_response(code, &status(code, &message))
            }
        };
        store.calls.push(call);
        drop(store);
        self.tell();
        response
    }

    /// What happens from a version on, line by line, without an end.
    fn stream(self: Arc<Self>, call: &Call, headers: &Headers) -> Response {
        let from = call.parameter("resourceVersion").and_then(|text| text.parse().ok()).unwrap_or(0);
        let (place, bare) = ((call.resource.clone(), call.namespace.clone()), headers.bare);
        let events = stream::unfold((self, from), move |(server, after)| {
            let place = place.clone();
            async move {
                let mut changed = server.changed.subscribe();
                loop {
                    if let Some(found) = server.next(&place, after) {
                        let object = if bare { trimmed(&found.object) } else { found.object };
                        let line = format!("{}\n", json!({ "type": found.what, "object": object }));
                        let line = Ok::<_, Infallible>(Bytes::from(line));
                        return Some((line, (server, found.version)));
                    }
                    changed.changed().await.ok()?;
                }
            }
        });
        Response::new(Body::from_stream(events))
    }

    fn next(&self, (resource, namespace): &(String, String), after: u64) -> Option<Happening> {
        let store = self.store.lock().unwrap();
        let is_here = |happening: &&Happening| {
            let (kind, space, _) = &happening.place;
            happening.version > after && kind == resource && (namespace.is_empty() || space == namespace)
        };
        store.happenings.iter().find(is_here).cloned()
    }
}

/// What matters of the headers.
struct Headers {
    bare: bool,
    apply: bool,
}

async fn answer(Given(door): Given<Door>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    let has = |name: header::HeaderName, part: &str| {
        parts
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.contains(part))
    };
    let headers = Headers {
        bare: has(header::ACCEPT, "PartialObjectMetadata"),
        apply: has(header::CONTENT_TYPE, "apply-patch"),
    };
    let mut call = Call::new(&door.who, &parts.method, &parts.uri, body);
    call.bare = headers.bare;
    // A request that has left its sender arrives, whether or not anybody still waits for the answer.
    let arrives = tokio::spawn(async move {
        door.gate.pass(&call).await;
        door.server.serve(call, &headers)
    });
    arrives.await.unwrap()
}

impl Store {
    fn carry_out(&mut self, call: &Call, headers: &Headers) -> Result<Value, Refusal> {
        let resource = call.resource.split('/').next().unwrap_or_default();
        let place = (resource.to_owned(), call.namespace.clone(), call.name.clone());
        let found = self.objects.get(&place).cloned();
        let none = || Refusal(404, format!("{} {} not found", call.resource, call.name));
        match call.verb {
            "watch" => Ok(Value::Null),
            "list" => Ok(self.list(call, headers)),
            "get" => {
                found.map(|object| if headers.bare { trimmed(&object) } else { object }).ok_or_else(none)
            }
            "create" => self.create(call),
            "update" => self.update(call, &place, &found.ok_or_else(none)?),
            "patch" if headers.apply && found.is_none() => {
                let makes = Call { verb: "create", name: String::new(), ..call.clone() };
                if !self.grants.allow(&makes, HOME) {
                    return Err(Refusal(403, format!("create {} is forbidden", call.resource)));
                }
                Ok(self.make(&place, call.body.clone()))
            }
            "patch" => self.patch(call, &place, &found.ok_or_else(none)?),
            "delete" => self.delete(call, &place, &found.ok_or_else(none)?),
            other => panic!("{other} is not spoken here"),
        }
    }

    fn list(&self, call: &Call, headers: &Headers) -> Value {
        let labels = call.parameter("labelSelector").unwrap_or_default();
        let is_here = |(kind, space, _): &Place| {
            *kind == call.resource && (call.namespace.is_empty() || *space == call.namespace)
        };
        let here = self.objects.iter().filter(|(place, _)| is_here(place)).map(|(_, object)| object);
        let chosen = here.filter(|object| selects(&labels, object));
        let items: Vec<Value> =
            chosen.map(|object| if headers.bare { trimmed(object) } else { object.clone() }).collect();
        let metadata = json!({ "resourceVersion": self.version.to_string() });
        json!({ "apiVersion": "v1", "kind": "List", "metadata": metadata, "items": items })
    }

    fn create(&mut self, call: &Call) -> Result<Value, Refusal> {
        let mut object = call.body.clone();
        if call.resource == "selfsubjectaccessreviews" {
            let allowed = self.grants.allow(&asked(&object), HOME);
            object["status"] = json!({ "allowed": allowed });
            return Ok(object);
        }
        object["metadata"]["namespace"] = json!(call.namespace);
        let place = place_of(&call.resource, &object);
        if self.objects.contains_key(&place) {
            return Err(Refusal(409, format!("{} {} already exists", call.resource, place.2)));
        }
        Ok(self.make(&place, object))
    }

    fn update(&mut self, call: &Call, place: &Place, old: &Value) -> Result<Value, Refusal> {
        check_version(&call.body, old)?;
        let mut new = call.body.clone();
        if call.resource.ends_with("/status") {
            new = old.clone();
            new["status"] = call.body["status"].clone();
        } else if let Some(status) = old.get("status") {
            new["status"] = status.clone();
        }
        Ok(self.store(place, old, new))
    }

    fn patch(&mut self, call: &Call, place: &Place, old: &Value) -> Result<Value, Refusal> {
        check_version(&call.body, old)?;
        let mut new = old.clone();
        merge(&mut new, &call.body);
        Ok(self.store(place, old, new))
    }

    fn delete(&mut self, call: &Call, place: &Place, old: &Value) -> Result<Value, Refusal> {
        let preconditions = json!({ "metadata": call.body.get("preconditions") });
        check_version(&preconditions, old)?;
        self.remove(place, old);
        Ok(json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" }))
    }

    fn make(&mut self, place: &Place, mut object: Value) -> Value {
        self.uids += 1;
        let metadata = &mut object["metadata"];
        if metadata.get("uid").is_none_or(Value::is_null) {
            metadata["uid"] = json!(format!("{:08x}-0000-4000-8000-000000000000", self.uids));
        }
        metadata["generation"] = json!(1);
        if let Some(Value::Object(texts)) = object.as_object_mut().and_then(|o| o.remove("stringData")) {
            let data = texts.iter().map(|(key, text)| (key.clone(), json!(encoded(text.as_str().unwrap()))));
            object["data"] = Value::Object(data.collect());
        }
        self.happens("ADDED", place, object)
    }

    /// Stores a changed object; what is as it was makes no new version, and one without finalizers that was
    /// deleted goes.
    fn store(&mut self, place: &Place, old: &Value, mut new: Value) -> Value {
        for key in ["uid", "resourceVersion", "generation", "deletionTimestamp"] {
            if old["metadata"].get(key).is_some() && key != "deletionTimestamp" {
                new["metadata"][key] = old["metadata"][key].clone();
            }
        }
        if new == *old {
            return new;
        }
        if new["spec"] != old["spec"] {
            let generation = old["metadata"]["generation"].as_i64().unwrap_or(1);
            new["metadata"]["generation"] = json!(generation + 1);
        }
        let keeps = new["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
        if new["metadata"].get("deletionTimestamp").is_some() && !keeps {
            self.remove(place, &new);
            return new;
        }
        self.happens("MODIFIED", place, new)
    }

    fn remove(&mut self, place: &Place, object: &Value) {
        self.happens("DELETED", place, object.clone());
        self.objects.remove(place);
    }

    fn happens(&mut self, what: &'static str, place: &Place, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let happening =
            Happening { version: self.version, what, place: place.clone(), object: object.clone() };
        self.happenings.push(happening);
        self.objects.insert(place.clone(), object.clone());
        object
    }
}

/// What an access review asks for, as a call.
fn asked(review: &Value) -> Call {
    let asked = &review["spec"]["resourceAttributes"];
    let text = |key: &str| asked[key].as_str().unwrap_or_default().to_owned();
    let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
    Call {
        who: String::new(),
        verb: verbs.into_iter().find(|verb| *verb == text("verb")).unwrap_or("unknown"),
        group: text("group"),
        resource: text("resource"),
        namespace: text("namespace"),
        name: text("name"),
        query: String::new(),
        body: Value::Null,
        bare: false,
        code: 0,
    }
}

fn place_of(resource: &str, object: &Value) -> Place {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
    (resource.to_owned(), text("namespace"), text("name"))
}

/// Refuses what was computed from another version, or from another object of that name.
fn check_version(wanted: &Value, found: &Value) -> Result<(), Refusal> {
    for key in ["resourceVersion", "uid"] {
        let (want, have) = (&wanted["metadata"][key], &found["metadata"][key]);
        if !want.is_null() && want != "" && want != have {
            return Err(Refusal(409, format!("the object has been modified: {key} is {have}, not {want}")));
        }
    }
    Ok(())
}

fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    into.remove(key);
                } else {
                    merge(into.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}

/// `a=b,c in (d,e)`.
fn selects(selector: &str, object: &Value) -> bool {
    let label = |key: &str| object["metadata"]["labels"][key].as_str();
    let mut rest = selector;
    while !rest.is_empty() {
        let (term, tail) = match rest.split_once(" in (") {
            Some((key, tail)) if !key.contains(',') => {
                let (values, tail) = tail.split_once(')').unwrap();
                (values.split(',').any(|value| label(key) == Some(value.trim())), tail)
            }
            _ => {
                let (pair, tail) = rest.split_once(',').unwrap_or((rest, ""));
                let (key, value) = pair.split_once('=').unwrap();
                (label(key) == Some(value.trim_start_matches('=')), tail)
            }
        };
        if !term {
            return false;
        }
        rest = tail.trim_start_matches(',');
    }
    true
}

/// As a Secret's data stands in JSON.
pub fn encoded(text: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// Metadata alone.
fn trimmed(object: &Value) -> Value {
    json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"] })
}

fn status(code: u16, message: &str) -> Value {
    let reason = match code {
        403 => "Forbidden",
        404 => "NotFound",
        _ => "Conflict",
    };
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "message": message, "reason": reason, "code": code, "metadata": {} })
}

fn json_response(code: u16, body: &Value) -> Response {
    (StatusCode::from_u16(code).unwrap(), axum::Json(body.clone())).into_response()
}
