import DefaultTheme from 'vitepress/theme';
import { type App, h } from 'vue';
import { HeroExample, OlderVersion, VersionMenu } from './components.ts';
import './style.css';

const slots = { 'home-hero-image': () => h(HeroExample), 'doc-before': () => h(OlderVersion) };

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, slots),
  enhanceApp({ app }: { app: App }) {
    app.component('VersionMenu', VersionMenu);
  },
};
