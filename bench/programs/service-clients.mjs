// Clients of service.mjs on PORT for SECONDS: sixteen at a time, each of which asks again when it is answered. Tells its
// parent how many answers there were.
import { Agent, request } from 'node:http';
import { texts } from './texts.mjs';

const [port, seconds] = process.argv.slice(2).map(Number);
const agent = new Agent({ keepAlive: true });
const bodies = texts(64, 30522).map((ids) => JSON.stringify(ids));

const ask = (body) =>
  new Promise((resolve, reject) => {
    const sent = request({ port, host: '127.0.0.1', method: 'POST', agent }, (response) => {
      response
        .resume()
        .on('end', () => resolve(response.statusCode))
        .on('error', reject);
    });
    sent.on('error', reject).end(body);
  });

const end = performance.now() + seconds * 1000;
let answered = 0;
async function client(first) {
  for (let i = first; performance.now() < end; i++) {
    const status = await ask(bodies[i % bodies.length]);
    if (status !== 200) throw new Error(`the service answered ${status}`);
    answered++;
  }
}
await Promise.all(Array.from({ length: 16 }, (_, i) => client(4 * i)));
agent.destroy();
process.send(answered, () => process.disconnect());
