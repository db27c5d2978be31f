import { isMacOs, KEY_MAP, KeyMod } from '@graphiql/react';

/**
 * GraphiQL binds its shortcuts to Monaco's `WinCtrl`, which is Ctrl on macOS but the Windows key elsewhere. The editors copy
 * these bindings, so this function has to run before the editors are created.
 */
export function bindShortcutsToCtrl(): void {
  if (isMacOs) return;
  for (const { keybindings } of [KEY_MAP.prettify, KEY_MAP.mergeFragments, KEY_MAP.copyQuery]) {
    keybindings.forEach((binding, index) => {
      keybindings[index] = (binding & ~KeyMod.WinCtrl) | KeyMod.CtrlCmd;
    });
  }
}
