//! Write a workflow of a world in Rust: one file, no crates, no imports. A step gets its state, an event
//! and a context, and says what comes of it:
//!
//!     use pawl_world::step;
//!
//!     step! {
//!         fn step(input, out) {
//!             let n = input.state().get("count").number() + input.event().get("inc").number();
//!             out.state(|w| { w.map(1).text("count").number(n); });
//!         }
//!     }
//!
//! Values need no order and no canonical form: the host brings them into it. What is malformed traps,
//! as a panic does, and a trap is recorded as the step's failure. Memory is never freed: an instance
//! lives for one call. Of the standard library everything works that asks nothing of a machine: strings,
//! collections, `format!`. Clocks, files and threads trap.

#[cfg(target_arch = "wasm32")]
mod machine {
    use std::alloc::{GlobalAlloc, Layout};
    use std::arch::wasm32::{memory_grow, memory_size, unreachable};
    use std::cell::Cell;

    extern "C" {
        static __heap_base: u8;
    }

    /// Takes from the end of memory, and gives nothing back.
    struct Bump(Cell<usize>);

    // An instance has one thread.
    unsafe impl Sync for Bump {}

    #[global_allocator]
    static HEAP: Bump = Bump(Cell::new(0));

    unsafe impl GlobalAlloc for Bump {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let next = match self.0.get() {
                0 => std::ptr::addr_of!(__heap_base) as usize,
                taken => taken,
            };
            let mask = layout.align() - 1;
            let at = match next.checked_add(mask) {
                Some(n) => n & !mask,
                None => return std::ptr::null_mut(),
            };
            let end = match at.checked_add(layout.size()) {
                Some(n) => n,
                None => return std::ptr::null_mut(),
            };
            let have = memory_size(0) << 16;
            if end > have && memory_grow(0, (end - have + 0xffff) >> 16) == usize::MAX {
                return std::ptr::null_mut();
            }
            self.0.set(end);
            at as *mut u8
        }
        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
    }

    #[export_name = "alloc"]
    extern "C" fn room(size: i32) -> *mut u8 {
        let layout = match Layout::from_size_align(if size > 0 { size as usize } else { 1 }, 16) {
            Ok(layout) => layout,
            Err(_) => unreachable(),
        };
        let at = unsafe { HEAP.alloc(layout) };
        if at.is_null() {
            unreachable()
        }
        at
    }
}

/// Ends the step as failed.
pub fn trap() -> ! {
    #[cfg(target_arch = "wasm32")]
    std::arch::wasm32::unreachable();
    #[cfg(not(target_arch = "wasm32"))]
    panic!("the step failed");
}

/// A CBOR item. Whatever is asked of an item that is not there is empty: `get` of nothing is nothing,
/// `number` is 0, `text` is "".
#[derive(Clone, Copy, Default)]
pub struct Item<'a> {
    at: Option<&'a [u8]>, // from the item's first byte to the end of what holds it
}

struct Head<'a> {
    major: u8,
    n: u64,
    rest: &'a [u8],
}

impl<'a> Item<'a> {
    pub fn new(bytes: &'a [u8]) -> Item<'a> {
        Item { at: if bytes.is_empty() { None } else { Some(bytes) } }
    }
    pub fn exists(&self) -> bool {
        self.at.is_some()
    }
    pub fn is_null(&self) -> bool {
        match self.at {
            None => true,
            Some(_) => matches!(self.simple(), Some(22 | 23)),
        }
    }
    /// The value under a name, of a map.
    pub fn get(&self, name: &str) -> Item<'a> {
        let mut left = match self.open(5) {
            Some(head) => head,
            None => return Item::default(),
        };
        while left.n > 0 {
            let key = head(left.rest);
            let found = key.major == 3 && take(&key) == name.as_bytes();
            let value = skip(left.rest);
            if found {
                return Item::new(value);
            }
            left = Head { n: left.n - 1, rest: skip(value), ..left }
        }
        Item::default()
    }
    /// How many items a list has, or entries a map.
    pub fn count(&self) -> usize {
        self.open(4).or_else(|| self.open(5)).map_or(0, |head| head.n as usize)
    }
    /// The item of a list.
    pub fn at(&self, index: usize) -> Item<'a> {
        self.items().nth(index).unwrap_or_default()
    }
    /// The items of a list, in order.
    pub fn items(&self) -> Items<'a> {
        self.open(4).map_or(Items { left: 0, rest: &[] }, |head| Items { left: head.n, rest: head.rest })
    }
    pub fn number(&self) -> u64 {
        self.open(0).map_or(0, |head| head.n)
    }
    pub fn integer(&self) -> i64 {
        self.open(0).map(|head| head.n as i64).or_else(|| self.open(1).map(|head| !(head.n as i64))).unwrap_or(0)
    }
    pub fn boolean(&self) -> bool {
        matches!(self.simple(), Some(21))
    }
    pub fn text(&self) -> &'a str {
        match std::str::from_utf8(self.open(3).map_or(&[], |head| take(&head))) {
            Ok(text) => text,
            Err(_) => trap(),
        }
    }
    pub fn bytes(&self) -> &'a [u8] {
        self.open(2).map_or(&[], |head| take(&head))
    }
    /// The item inside a byte string.
    pub fn inside(&self) -> Item<'a> {
        Item::new(self.bytes())
    }
    pub fn raw(&self) -> &'a [u8] {
        self.at.map_or(&[], |bytes| &bytes[..bytes.len() - skip(bytes).len()])
    }

    fn open(&self, major: u8) -> Option<Head<'a>> {
        self.at.map(head).filter(|head| head.major == major)
    }
    fn simple(&self) -> Option<u64> {
        self.open(7).map(|head| head.n)
    }
}

pub struct Items<'a> {
    left: u64,
    rest: &'a [u8],
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;
    fn next(&mut self) -> Option<Item<'a>> {
        if self.left == 0 {
            return None;
        }
        let item = Item::new(self.rest);
        self.rest = skip(self.rest);
        self.left -= 1;
        Some(item)
    }
}

// The head of the item that begins here; tags before it are passed over.
fn head(mut bytes: &[u8]) -> Head<'_> {
    loop {
        let (first, rest) = match bytes.split_first() {
            Some(both) => both,
            None => trap(),
        };
        let (major, info) = (first >> 5, first & 31);
        let more = match info {
            0..=23 => 0,
            24..=27 => 1 << (info - 24),
            _ => trap(),
        };
        if rest.len() < more {
            trap()
        }
        let (number, rest) = rest.split_at(more);
        let n = if more == 0 { info as u64 } else { number.iter().fold(0, |n, byte| n << 8 | *byte as u64) };
        if major != 6 {
            return Head { major, n, rest };
        }
        bytes = rest;
    }
}

// The bytes of a text or a byte string.
fn take<'a>(head: &Head<'a>) -> &'a [u8] {
    if head.n > head.rest.len() as u64 {
        trap()
    }
    &head.rest[..head.n as usize]
}

// What comes after the item that begins here.
fn skip(bytes: &[u8]) -> &[u8] {
    let head = head(bytes);
    let inner = match head.major {
        2 | 3 => return &head.rest[take(&head).len()..],
        4 => head.n,
        5 => head.n.saturating_mul(2),
        _ => 0,
    };
    (0..inner).fold(head.rest, |rest, _| skip(rest))
}

/// Writes CBOR items one after the other.
#[derive(Default)]
pub struct Writer {
    out: Vec<u8>,
}

impl Writer {
    pub fn new() -> Writer {
        Writer::default()
    }
    pub fn map(&mut self, entries: usize) -> &mut Writer {
        self.head(5, entries as u64)
    }
    pub fn list(&mut self, items: usize) -> &mut Writer {
        self.head(4, items as u64)
    }
    pub fn number(&mut self, n: u64) -> &mut Writer {
        self.head(0, n)
    }
    pub fn integer(&mut self, n: i64) -> &mut Writer {
        if n < 0 {
            self.head(1, !n as u64)
        } else {
            self.head(0, n as u64)
        }
    }
    pub fn text(&mut self, text: &str) -> &mut Writer {
        self.head(3, text.len() as u64).raw(text.as_bytes())
    }
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Writer {
        self.head(2, bytes.len() as u64).raw(bytes)
    }
    pub fn boolean(&mut self, v: bool) -> &mut Writer {
        self.raw(&[if v { 0xf5 } else { 0xf4 }])
    }
    pub fn null(&mut self) -> &mut Writer {
        self.raw(&[0xf6])
    }
    /// A variant's arm without a value.
    pub fn arm(&mut self, name: &str) -> &mut Writer {
        self.map(1).text("$tag").text(name)
    }
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Writer {
        self.out.extend_from_slice(bytes);
        self
    }
    pub fn view(&self) -> &[u8] {
        &self.out
    }

    fn head(&mut self, major: u8, n: u64) -> &mut Writer {
        let top = major << 5;
        if n < 24 {
            return self.raw(&[top | n as u8]);
        }
        let size = match n {
            0..=0xff => 0,
            0x100..=0xffff => 1,
            0x1_0000..=0xffff_ffff => 2,
            _ => 3,
        };
        self.raw(&[top | (24 + size)]).raw(&n.to_be_bytes()[8 - (1 << size)..])
    }
}

/// What a step is given.
pub struct In<'a> {
    all: Item<'a>,
}

impl<'a> In<'a> {
    pub fn new(bytes: &'a [u8]) -> In<'a> {
        let all = Item::new(bytes);
        if all.get("version").number() != 1 {
            trap()
        }
        In { all }
    }
    pub fn has_state(&self) -> bool {
        !self.all.get("state").is_null()
    }
    pub fn state(&self) -> Item<'a> {
        self.all.get("state").inside()
    }
    /// The event; of a variant, what its arm holds.
    pub fn event(&self) -> Item<'a> {
        let value = self.value();
        let inner = value.get("$value");
        if inner.exists() {
            inner
        } else {
            value
        }
    }
    /// The name of a variant's arm.
    pub fn arm(&self) -> &'a str {
        self.value().get("$tag").text()
    }
    /// The key's bytes: `Item::new(input.key())` reads them.
    pub fn key(&self) -> &'a [u8] {
        self.all.get("event").get("key").bytes()
    }
    pub fn context(&self) -> Item<'a> {
        self.all.get("ctx").inside()
    }
    pub fn now_ns(&self) -> u64 {
        self.context().get("now_ns").number()
    }

    fn value(&self) -> Item<'a> {
        self.all.get("event").get("value").inside()
    }
}

/// What comes of a step. Without `state` or `keep` the cell is gone.
#[derive(Default)]
pub struct Out {
    state: Option<Vec<u8>>,
    completed: bool,
    events: Writer,
    event_count: usize,
    effects: Writer,
    effect_count: usize,
}

/// What an effect may have beside its params.
#[derive(Clone, Copy, Default)]
pub struct Terms<'a> {
    pub issuer: &'a str,
    pub idempotency_key: &'a [u8],
}

impl Out {
    pub fn state(&mut self, write: impl FnOnce(&mut Writer)) {
        self.state = Some(written(write).out);
    }
    /// The state as it was.
    pub fn keep(&mut self, input: &In) {
        self.state = if input.has_state() { Some(input.state().raw().into()) } else { None };
    }
    /// The cell is gone.
    pub fn erase(&mut self) {
        self.state = None;
    }
    /// Done, with its state kept.
    pub fn complete(&mut self) {
        self.completed = true;
    }
    pub fn event(&mut self, schema: &str, write: impl FnOnce(&mut Writer)) {
        let value = written(write);
        self.events.map(2).text("schema").text(schema).text("value").bytes(value.view());
        self.event_count += 1;
    }
    pub fn effect(&mut self, name: &str, params: impl FnOnce(&mut Writer)) {
        self.effect_on(name, params, Terms::default());
    }
    pub fn effect_on(&mut self, name: &str, params: impl FnOnce(&mut Writer), terms: Terms) {
        let value = written(params);
        let more = !terms.issuer.is_empty() as usize + !terms.idempotency_key.is_empty() as usize;
        self.effects.map(2 + more).text("effect").text(name).text("params").bytes(value.view());
        if !terms.issuer.is_empty() {
            self.effects.text("issuer_ref").text(terms.issuer);
        }
        if !terms.idempotency_key.is_empty() {
            self.effects.text("idempotency_key").bytes(terms.idempotency_key);
        }
        self.effect_count += 1;
    }
    pub fn done(&self) -> Vec<u8> {
        let mut w = Writer::new();
        w.map(if self.completed { 4 } else { 3 }).text("state");
        match &self.state {
            Some(state) => w.bytes(state),
            None => w.null(),
        };
        w.text("domain_events").list(self.event_count).raw(self.events.view());
        w.text("effects").list(self.effect_count).raw(self.effects.view());
        if self.completed {
            w.text("status").text("completed");
        }
        w.out
    }
}

fn written(write: impl FnOnce(&mut Writer)) -> Writer {
    let mut w = Writer::new();
    write(&mut w);
    w
}

/// Runs a step on the bytes of its input: what an export does, and a test may.
pub fn run(step: fn(&In, &mut Out), input: &[u8]) -> Vec<u8> {
    let mut out = Out::default();
    step(&In::new(input), &mut out);
    out.done()
}

/// Defines an export: an entrypoint of a workflow, or `migrate`.
#[macro_export]
macro_rules! step {
    (fn $name:ident($input:ident, $out:ident) $body:block) => {
        /// # Safety
        /// The host gives `size` bytes at `data`, and room for two numbers at `ret`.
        #[no_mangle]
        pub unsafe extern "C" fn $name(ret: *mut usize, data: *const u8, size: usize) {
            #[allow(unused_variables)]
            fn body($input: &$crate::In, $out: &mut $crate::Out) $body
            let done = $crate::run(body, std::slice::from_raw_parts(data, size)).leak();
            ret.write(done.as_ptr() as usize);
            ret.add(1).write(done.len());
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_at_every_size() {
        for n in [0, 23, 24, 255, 256, 65535, 65536, u32::MAX as u64, u32::MAX as u64 + 1, u64::MAX] {
            assert_eq!(Item::new(Writer::new().number(n).view()).number(), n);
        }
        for n in [0, -1, -24, -25, -256, -257, i64::MIN, i64::MAX] {
            assert_eq!(Item::new(Writer::new().integer(n).view()).integer(), n);
        }
        assert_eq!(Item::new(Writer::new().integer(-1).view()).number(), 0);
    }

    #[test]
    fn values_are_found_past_others_and_what_is_not_there_is_empty() {
        let mut w = Writer::new();
        w.map(4).text("list").list(3).map(1).text("x").bytes(&[0; 300]).null().text("é");
        w.text("arm").arm("Idle").text("yes").boolean(true).text("last").text("end").raw(b"more");
        let item = Item::new(w.view());
        assert_eq!((item.count(), item.get("list").count()), (4, 3));
        assert_eq!(item.get("list").at(0).get("x").bytes().len(), 300);
        assert!(item.get("list").at(1).is_null() && item.get("list").at(1).exists());
        assert_eq!(item.get("list").at(2).text(), "é");
        assert_eq!(item.get("list").items().count(), 3);
        assert_eq!(item.get("arm").get("$tag").text(), "Idle");
        assert!(item.get("yes").boolean());
        assert_eq!(item.get("last").raw(), b"\x63end");
        assert_eq!(item.raw().len() + 4, w.view().len());
        let none = item.get("none").get("deeper").at(3);
        assert!(!none.exists() && none.is_null() && !none.boolean());
        assert_eq!((none.number(), none.integer(), none.text(), none.raw().len()), (0, 0, "", 0));
    }

    #[test]
    fn tags_are_passed_over_and_malformed_bytes_trap() {
        assert_eq!(Item::new(b"\xd9\xd9\xf7\x61a").text(), "a");
        for bad in [&b"\x62a"[..], b"\x18", b"\x1c", b"\x9f", b"\xd9\xd9", b"\x82\x01", b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff"] {
            assert!(std::panic::catch_unwind(|| Item::new(bad).raw().len() + Item::new(bad).text().len()).is_err(), "{:?}", bad);
        }
    }

    #[test]
    fn a_step_says_what_comes_of_it() {
        let mut w = Writer::new();
        w.map(3).text("version").number(1).text("state").null().text("event").map(1).text("value").bytes(b"\xa2\x64$tag\x61A\x66$value\x07");
        let step: fn(&In, &mut Out) = |input, out| {
            assert!(!input.has_state() && input.arm() == "A" && input.event().number() == 7);
            out.state(|w| { w.number(8); });
            out.event("a/B@1", |w| { w.null(); });
            out.effect_on("a/c@1", |w| { w.null(); }, Terms { issuer: "me", ..Terms::default() });
            out.complete();
        };
        let done = run(step, w.view());
        let done = Item::new(&done);
        assert_eq!(done.get("state").inside().number(), 8);
        assert_eq!(done.get("domain_events").at(0).get("schema").text(), "a/B@1");
        let effect = done.get("effects").at(0);
        assert_eq!((effect.count(), effect.get("issuer_ref").text(), effect.get("params").bytes()), (3, "me", &b"\xf6"[..]));
        assert_eq!(done.get("status").text(), "completed");
    }
}
