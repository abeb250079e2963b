declare module 'node-gyp-build' {
  /** Loads the addon that fits this process from `directory`. */
  export default function load(directory: string): unknown;
}
