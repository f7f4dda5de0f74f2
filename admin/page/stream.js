// The stream of what the board shows: read over fetch, so that a refusal can be read, and opened again when it is lost.

const silence = 5000; // ms without an event after which a stream is taken for dead: they come twice a second
const first = 500, most = 8000; // ms between attempts

/**
 * follow reads events from a path for ever. told gets each of them, state gets "live", or "lost" and why.
 */
export async function follow(path, told, state) {
  for (let wait = first; ; wait = Math.min(wait * 2, most)) {
    try {
      await once(path, (v) => {
        wait = first;
        state("live", "");
        told(v);
      });
      state("lost", "the stream has ended");
    } catch (e) {
      state("lost", e instanceof Error ? e.message : String(e));
    }
    await new Promise((r) => setTimeout(r, wait * (0.75 + Math.random() / 2)));
  }
}

async function once(path, told) {
  const abort = new AbortController();
  let timer = setTimeout(() => abort.abort(new Error("the server is silent")), silence);
  try {
    const answer = await fetch(path, { signal: abort.signal, cache: "no-store" });
    if (!answer.ok) {
      const why = await answer.json().catch(() => ({}));
      throw new Error(String(why.error || `the server says ${answer.status}`));
    }
    const text = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await text.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const data = part.split("\n").filter((l) => l.startsWith("data: ")).map((l) => l.slice(6)).join("\n");
        if (!data) continue;
        clearTimeout(timer);
        timer = setTimeout(() => abort.abort(new Error("the server is silent")), silence);
        told(JSON.parse(data));
      }
    }
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
}
