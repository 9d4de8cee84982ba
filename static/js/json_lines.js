// Responses of one JSON value per line, as they arrive.

export async function* readLines(response) {
  let incomplete = "";
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    const lines = (incomplete + chunk.value).split("\n");
    incomplete = lines.pop();
    yield* lines.filter(Boolean).map((line) => JSON.parse(line));
  }
}
