// Browsers and Node from version 22 have a global WebSocket.
globalThis.WebSocket ??= require('ws');
