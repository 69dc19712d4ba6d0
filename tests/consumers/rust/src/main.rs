//! Calls models through their crates, and prints what they give.

use std::error::Error;
use std::thread;

fn print<Value: Into<f64> + Copy>(name: &str, values: &[Value]) {
    let words: Vec<String> = values.iter().map(|value| format!("{:.7e}", (*value).into())).collect();
    println!("{} {}", name, words.join(" "));
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut x = vec![0.0; 64];
    x[0] = 1.0;
    x[1] = -1.0;
    let weights = tiny_sys::Weights::open("tiny.bin")?;
    let mut layer = tiny_sys::Model::new(&weights);
    print("tiny", &layer.ffn(&x)?);

    let mut units = vec![0; 64];
    units[0] = 1000;
    units[1] = -1000;
    print("integers", &integers_sys::Model::new(&integers_sys::Weights::open("integers.bin")?).ffn(&units)?);

    let tokens: Vec<f32> = (0..3 * 64).map(|i| (i % 7 - 3) as f32 / 4.0).collect();
    let mut blocks = tiny_skipless_sys::Model::new(&tiny_skipless_sys::Weights::open("tiny_skipless.bin")?);
    let mut sequence = tiny_skipless_sys::Sequence::new();
    let mut y = blocks.prefill(&mut sequence, &tokens[..128])?;
    y.extend(blocks.decode(&mut sequence, &tokens[128..])?);
    print("tiny_skipless", &y);

    let mut decoder = decoder_sys::Model::new(&decoder_sys::Weights::open("decoder.bin")?);
    let mut text = decoder_sys::Sequence::new();
    let ids = decoder.tokenize("Hello")?;
    let mut y = decoder.prefill_all(&mut text, &ids[..ids.len() - 1])?;
    let mut branch = text.clone();
    y.extend(decoder.step(&mut branch, ids[ids.len() - 1])?);
    print("decoder", &y);
    println!("text {} {} {}", decoder.detokenize(&ids), text.position(), branch.position());

    let mut encoder = encoder_sys::Model::new(&encoder_sys::Weights::open("encoder.bin")?);
    let ids = encoder.tokenize("Hello")?;
    print("encoder", &encoder.encode(&ids)?);

    if let Err(tiny_sys::Error::Length { .. }) = layer.ffn(&vec![0.0; 65]) {
        println!("shape");
    }
    if let Err(error) = tiny_sys::Weights::open("encoder.bin") {
        if let tiny_sys::Error::Status(code) = error {
            println!("code {}: {}", code, error);
        }
    }
    std::fs::write("short.bin", "few")?;
    for name in ["short", "none"] {
        if let Err(error) = tiny_sys::Weights::open(format!("{}.bin", name)) {
            println!("{} {}", name, error);
        }
    }
    if let Err(error) = decoder.step(&mut branch, 256) {
        println!("id {}", error);
    }

    // Each thread has a model of its own; they share weights.
    let expected = layer.ffn(&x)?;
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let (mut layer, x) = (layer.clone(), x.clone());
            thread::spawn(move || layer.ffn(&x).unwrap())
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), expected);
    }
    Ok(())
}
