//$ takes
//$ -- How many tokens an argument has.
fn tokens(given: usize, width: usize, must_be: &'static str) -> Result<usize, Error> {
    if given % width == 0 {
        Ok(given / width)
    } else {
        Err(Error::Length { given, must_be })
    }
}
