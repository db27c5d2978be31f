// The first screen of the site. The page itself is docs/README.md.

const icon = (paths) =>
  `<svg viewBox="0 0 24 24" width="26" height="26" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${paths}</svg>`;

const FEATURES = [
  {
    icon: icon('<path d="M6 3h8l4 4v14H6z"/><path d="M14 3v4h4"/><path d="M9 13h6M9 17h6"/>'),
    title: 'Static files',
    details:
      'Strong ETags from the content, ranges, precompressed copies. A response is never older than the file.',
    link: '/static-files',
  },
  {
    icon: icon('<path d="M12 3l8 4.6v8.8L12 21l-8-4.6V7.6z"/><path d="M12 3l7.6 13.2H4.4z"/>'),
    title: 'GraphQL over HTTP',
    details: 'All 61 audits pass. Finite limits, masked errors, CSRF protection, and a compiled engine.',
    link: '/graphql',
  },
  {
    icon: icon('<path d="M4 15v4h16v-4"/><path d="M12 15V4"/><path d="M8 8l4-4 4 4"/>'),
    title: 'Uploads',
    details: 'Multipart requests with limits to the byte. Nothing stays on disk after an error or an abort.',
    link: '/uploads',
  },
  {
    icon: icon(
      '<path d="M5 12a7 7 0 0 1 14 0"/><path d="M8.5 12a3.5 3.5 0 0 1 7 0"/><circle cx="12" cy="12" r="1"/><path d="M12 13v7"/>',
    ),
    title: 'Subscriptions',
    details:
      'WebSockets in both subprotocols and server-sent events on one path, shared execution, several processes.',
    link: '/subscriptions',
  },
  {
    icon: icon('<rect x="3" y="5" width="18" height="14" rx="2"/><path d="M7 10l3 2.5L7 15M12.5 15H17"/>'),
    title: 'GraphiQL offline',
    details: 'The editor is in the package. It loads nothing from a CDN and runs under a strict CSP.',
    link: '/graphiql',
  },
  {
    icon: icon('<path d="M12 3l7 3v5c0 5-3 8.4-7 10-4-1.6-7-5-7-10V6z"/><path d="M9 12l2 2 4-4"/>'),
    title: 'Safe defaults',
    details: 'Options are checked at the start, limits are finite, and each refusal names its reason.',
    link: '/security',
  },
];

export const HOME = {
  layout: 'home',
  hero: {
    name: 'espalier',
    text: 'Files, GraphQL and live data for Express',
    tagline: 'Independent functions for an Express app. Use one of them, or all on one port.',
    actions: [
      { theme: 'brand', text: 'Tutorial: 15 minutes', link: '/tutorial' },
      { theme: 'alt', text: 'How it works', link: '/how-it-works' },
      { theme: 'alt', text: 'Migrating', link: '/migrating' },
    ],
  },
  features: FEATURES,
};
