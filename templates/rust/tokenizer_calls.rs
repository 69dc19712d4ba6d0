//$ takes facts, error_room
    /// The ids of a text, any bytes.
    pub fn tokenize(&self, text: impl AsRef<[u8]>) -> Result<Vec<i32>, Error> {
        let text = text.as_ref();
        let bytes = sizes().tokenize_scratch + text.len() * sizes().tokenize_scratch_more;
        let mut work = Memory::new(bytes);
        let mut ids = vec![0; text.len() + 16];
        loop {
            let count = unsafe {
                let (weights, from, room) = (self.weights.pointer(), text.as_ptr() as *const _, ids.len());
                ffi::$(names.tokenize)(weights, from, text.len(), ids.as_mut_ptr(), room, work.pointer(), bytes)
            };
            if count == -$(error_room) {
                ids.resize(2 * ids.len(), 0);
                continue;
            }
            check(if count < 0 { -count as c_int } else { 0 })?;
            ids.truncate(count as usize);
            return Ok(ids);
        }
    }
    /// What an id adds to a text; `None` for what is no id.
    pub fn text_of(&self, id: i32) -> Option<&[u8]> {
        let mut bytes = 0;
        let text = unsafe { ffi::$(names.text_of)(self.weights.pointer(), id, &mut bytes) };
        if text.is_null() {
            None
        } else {
            Some(unsafe { slice::from_raw_parts(text as *const u8, bytes) })
        }
    }
    /// The text of ids; what is no id has none, and what is not UTF-8 counts as U+FFFD.
    pub fn detokenize(&self, ids: &[i32]) -> String {
        let mut text = Vec::new();
        for id in ids {
            text.extend_from_slice(self.text_of(*id).unwrap_or(&[]));
        }
        let text = text.strip_prefix(b" ").unwrap_or(&text); //$ if facts.leading_space
        String::from_utf8_lossy(&text).into_owned()
    }
