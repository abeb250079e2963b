// Child-process side of engine-process.mjs: answers one request at a time.
import { engineOperations } from './engine-operations.mjs';
import { loadEngine } from './engine.mjs';

const operations = engineOperations(await loadEngine());

process.on('message', async ({ serial, operation, argument }) => {
  let reply;
  try {
    reply = { serial, value: await operations[operation](argument) };
  } catch (error) {
    const { name, message, code, input, node, opType, expected, actual, path } = error;
    reply = { serial, error: { name, message, code, input, node, opType, expected, actual, path } };
  }
  process.send(reply);
});
process.on('disconnect', () => process.exit(0));
process.send({ ready: true });
