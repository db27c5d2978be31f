import { useData } from 'vitepress';
import DefaultTheme from 'vitepress/theme';
import { type App, defineComponent, h, onMounted, watch } from 'vue';
import { NotFound, OlderVersion, VersionMenu } from './components.ts';
import { HeroExample, HomeParts, InstallLine } from './home.ts';
import './style.css';

const slots = {
  'home-hero-info-after': () => h(InstallLine),
  'home-hero-image': () => h(HeroExample),
  'home-hero-after': () => h(HomeParts),
  'doc-before': () => h(OlderVersion),
  'not-found': () => h(NotFound),
};

/** The layout of VitePress; its first page and its 404 page have no main landmark. */
const Layout = defineComponent(() => {
  const { frontmatter, page } = useData();
  const markMain = () => {
    const content = document.getElementById('VPContent');
    if (frontmatter.value['layout'] === 'home' || page.value.isNotFound)
      content?.setAttribute('role', 'main');
    else content?.removeAttribute('role');
  };
  onMounted(markMain);
  watch(page, markMain, { flush: 'post' });
  return () => h(DefaultTheme.Layout, null, slots);
});

export default {
  extends: DefaultTheme,
  Layout,
  enhanceApp({ app }: { app: App }) {
    app.component('VersionMenu', VersionMenu);
  },
};
