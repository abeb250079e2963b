import { loadNative } from '../load-native.js';

// Before the modules that follow: the engine prepares for the first load on a thread while they are read.
loadNative();
