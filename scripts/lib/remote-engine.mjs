// The engine API over an EngineProcess: programs written against the package run unchanged in another process.

class RemoteTensor {
  location = 'cpu';

  constructor(type, data, dims = [data.length]) {
    Object.assign(this, { type, data, dims });
  }

  get size() {
    return this.dims.reduce((a, b) => a * b, 1);
  }
}

const plain = ({ type, data, dims }) => ({ type, data, dims });

/**
 * @param {import('./engine-process.mjs').EngineProcess} engine
 * @param {(file: string, inputs: object, outputs: object) => void} [onRun] sees each run's plain values
 */
export function remoteEngine(engine, onRun) {
  return {
    Tensor: RemoteTensor,
    InferenceSession: {
      async create(path, options) {
        const { id, inputNames, outputNames } = await engine.create(path, options);
        return {
          inputNames,
          outputNames,
          async run(feeds, fetches) {
            const inputs = Object.fromEntries(Object.entries(feeds).map(([name, value]) => [name, plain(value)]));
            const outputs = await engine.run(id, inputs, fetches);
            onRun?.(path, inputs, outputs);
            const wrap = ([name, { type, data, dims }]) => [name, new RemoteTensor(type, data, dims)];
            return Object.fromEntries(Object.entries(outputs).map(wrap));
          },
          release: () => engine.release(id),
        };
      },
    },
  };
}
