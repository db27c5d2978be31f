// Starts the files that took longest first, so that no worker is left with a long one at the end.
const { join, relative } = require('node:path');
const durations = require('../../test/durations.json');

const root = join(__dirname, '../..');

module.exports = class {
  sort(tests) {
    // A new file comes first: it may take long.
    const secondsOf = ({ path }) => durations[relative(root, path).replaceAll('\\', '/')] ?? Infinity;
    return [...tests].sort((a, b) => secondsOf(b) - secondsOf(a) || (a.path < b.path ? -1 : 1));
  }

  cacheResults() {}
};
