import { loadNative } from '../load-native.js';

// Before the modules that follow: the engine prepares for the first load on a thread while they are read. Where there is
// no addon, importing the package does not fail: what uses it does.
try {
  loadNative();
} catch {
  // said at the first use, when the words for it can be loaded
}
