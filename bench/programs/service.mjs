// An HTTP service: POST a list of token ids, get the vector of the sentence. Clients in a process of their own keep sixteen
// requests on their way.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { embed, texts } from './texts.mjs';

export const model = 'minilm_l6';
export const unit = 'requests';

const clients = fileURLToPath(new URL('service-clients.mjs', import.meta.url));

export async function start({ ort, path }) {
  const session = await ort.InferenceSession.create(path);
  const server = createServer(async (request, response) => {
    try {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      const vector = await embed(ort, session, JSON.parse(Buffer.concat(chunks)));
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify([...vector]));
    } catch (error) {
      response.writeHead(500).end(error.message);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const [text] = texts(1, 30522);
  return {
    answer: [...(await embed(ort, session, text))].slice(0, 8),
    async work(seconds) {
      const child = fork(clients, [String(server.address().port), String(seconds)]);
      const [answered] = await once(child, 'message');
      return answered;
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await session.release();
    },
  };
}
