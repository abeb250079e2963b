// Makes sessions of the model in the file given and forgets them; prints by how many bytes the process grew at most. Node
// counts ArrayBuffers alone as external memory, so only growth shows whether the engine's memory drives V8's collections.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const ort = createRequire(import.meta.url)(fileURLToPath(new URL('../../..', import.meta.url)));
const model = readFileSync(process.argv[2]);
const sessions = 24;

const before = process.memoryUsage().rss;
let growth = 0;
for (let i = 0; i < sessions; i++) {
  await ort.InferenceSession.create(model);
  await new Promise(setImmediate); // finalizers run between turns of the event loop
  growth = Math.max(growth, process.memoryUsage().rss - before);
}
console.log(JSON.stringify({ sessions, bytes: model.length, growth }));
