/**
 * Words that the project does not use, each with the plain words to use instead. CONTRIBUTING.md has the
 * glossary. A space in a pattern also matches the end of a line, with the marks of a comment.
 *
 * A raw pattern is compared with the text itself, marks of comments included.
 *
 * @typedef {{ pattern: string, use: string, raw?: boolean }} Rule
 * @type {readonly Rule[]}
 */
export const RULES = [
  // People instead of components
  { pattern: 'nobody', use: 'name the component: "no client", "no code", "no one"' },
  { pattern: 'somebody|anybody|everybody', use: 'name it: "a client", "the caller", "every client"' },
  { pattern: 'whoever', use: 'name the component: "the caller that", "each client that"' },
  { pattern: '(?:all|those|them) who', use: 'name them: "clients that", "requests that"' },
  {
    pattern: 'who (?:asks?|wants?|waits?|reads?|gives?|comes?|cares?|does)',
    use: 'name it: "the client that …"',
  },
  { pattern: 'strangers?', use: 'unclaimed, unknown, another client' },
  { pattern: 'affairs?', use: 'is up to …, is handled by …' },
  { pattern: 'at home', use: 'in the folder that owns it, native' },
  { pattern: 'born', use: 'created' },
  { pattern: 'unharmed', use: 'still serves requests, unaffected' },
  { pattern: 'a full house', use: 'at maxConnections' },
  { pattern: 'the papers', use: 'LICENSE and README' },
  { pattern: 'wish(?:es)?', use: 'requests, wants, extensions' },
  { pattern: 'clients? (?:(?:has|have) left|leaves?)', use: 'has disconnected, has unsubscribed' },
  { pattern: 'hostile', use: 'malicious, malformed, expensive' },

  // "tell", "answer", "look", "ask"
  {
    pattern: '(?:is|are|was|were|be|been|being) (?:never |not |all |only |also )?told',
    use: 'is reported, receives',
  },
  { pattern: 'tells?|told|telling', use: 'reports, says, distinguishes' },
  { pattern: 'answer(?:s|ed|ing)?', use: 'response, responds with, sends, result' },
  { pattern: '(?:a|the|one|each|every|any|this|next|same|last|first) looks?', use: 'stat, check, lookup' },
  { pattern: 'look-ups?', use: 'lookup' },
  { pattern: 'look(?:s|ed|ing)? at', use: 'checks, reads, inspects' },
  { pattern: 'looks', use: 'stats, checks' },
  {
    pattern: '(?:is|are|was|were|be|been|being) (?:never |not |only )?asked',
    use: 'is called, is requested',
  },
  { pattern: 'asks? nobody', use: 'does not check' },

  // Headless clauses and negations that are not English
  {
    pattern: 'what (?:is|are|was) (?:no|not|none|left|open|ours|kept|set|due|known|remembered)',
    use: 'name it: "values that …"',
  },
  { pattern: '(?<!there )(?:is|are|was|were) none(?! of)', use: 'is not one, there is none' },
  {
    pattern: '(?<!there )(?:is|are|was|were) no(?! (?:longer|more|fewer|less|earlier|later|different))',
    use: 'is not a',
  },
  { pattern: "(?:is|are) (?:nobody|somebody)[’']s", use: 'name the owner' },
  { pattern: 'it is its own', use: 'say what it is' },
  {
    pattern: '(?:/\\*\\*|(?<!//.*\\n\\s*)//)[\\s*]+(?:What|Who|Whom|How|Why|Which)',
    raw: true,
    use: 'begin with a noun or a verb: "The …", "Returns …"',
  },
  {
    // "of its own resolvers" is fine; "a resolver of its own" is not.
    pattern:
      'of (?:its|their|our|his|your) own(?!\\s+(?!(?:and|or|on|in|for|to|that|which|with|when|as|at|by|is|are|was|were|has|have|can|may|must|whose|who|under|each|if|so|but|from|before|after|until|of|than|per|over|then)\\b)\\w)',
    use: '"its own …", or leave it out',
  },
  { pattern: 'of ours', use: '"our …"' },
  { pattern: 'to be had', use: 'available' },
  { pattern: 'an own', use: 'its own' },
  { pattern: 'odd paths?', use: 'malformed paths' },

  // Time and order
  { pattern: 'at once', use: 'immediately, synchronously, at the same time' },
  { pattern: 'now or later', use: 'synchronously or as a promise' },
  { pattern: '(?:go|goes|going|went|gone) on(?! to)', use: 'continues' },
  { pattern: '(?:have|has|had|takes?|took) (?:a|their|its|the|his) turns?', use: 'runs, is served' },
  { pattern: 'turns? of (?:its|their|our) own', use: 'yields to the event loop' },
  { pattern: 'hasten(?:s|ed)?', use: 'flush soon, run earlier' },
  { pattern: 'for ever', use: 'forever, without end' },
  { pattern: 'in vain', use: 'without effect' },
  { pattern: 'gone', use: 'closed, aborted, deleted, disconnected' },
  { pattern: 'held', use: 'kept, queued, buffered, paused' },

  // Place
  { pattern: 'beside', use: 'compared with, next to, in addition to' },
  { pattern: 'in front', use: 'earlier middleware, before' },
  { pattern: 'stands (?:in|where|beside|behind|before|at|on|here|there|still|alone)', use: 'is' },
  { pattern: 'foreign(?! keys?)', use: 'unknown, not ours, cross-site' },
  { pattern: 'plain misse?s?', use: '404, cache miss' },
  { pattern: 'is served here', use: 'is allowed' },

  // Other relics
  { pattern: 'nonsense', use: 'invalid' },
  { pattern: 'acceptable are', use: 'supported …:' },
  { pattern: 'as it was no earlier', use: 'never older than' },
  { pattern: 'say which one', use: 'specify' },
  { pattern: '(?:is|are|was|were) read before', use: 'has already been consumed' },
  { pattern: 'fits? nothing', use: 'matches nothing' },
  { pattern: 'a reader lags', use: 'a slow client' },
  { pattern: 'fleets?', use: 'servers, clients' },
  { pattern: 'knows? (?:no|nothing of|nothing about)', use: 'does not depend on, does not support' },
];
