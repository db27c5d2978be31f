// The title of the site's first page. Below it come .vitepress/theme/home.ts and docs/README.md.

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
};
