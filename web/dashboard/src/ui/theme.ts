import {
  createTheme,
  type DrawerProps,
  type MantineColorsTuple,
  type ModalProps,
  type SelectProps,
  type TooltipProps,
} from "@mantine/core";

// The checkout's green; white on the seventh shade has a contrast of more than 4.5, in light and in dark.
const green: MantineColorsTuple = [
  "#e9f6f2",
  "#d3ebe4",
  "#a5d8c9",
  "#74c4ac",
  "#45c9a8",
  "#2a9d82",
  "#0b6b57",
  "#0a5f4d",
  "#085142",
  "#064236",
];

function defaults<Props>(defaultProps: Partial<Props>) {
  return { defaultProps };
}

export const theme = createTheme({
  primaryColor: "green",
  primaryShade: 6,
  autoContrast: true,
  colors: { green },
  defaultRadius: "md",
  cursorType: "pointer",
  respectReducedMotion: true,
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", SFMono-Regular, "Cascadia Mono", "Roboto Mono", Menlo, monospace',
  // Named, and not by the components themselves: those come with the pages that use them.
  components: {
    // Their scroll lock inserts a style tag, which the policy blocks.
    Modal: defaults<ModalProps>({ lockScroll: false, centered: true, radius: "lg" }),
    Drawer: defaults<DrawerProps>({ lockScroll: false }),
    // Who chooses what is chosen already wants to keep it. A filter has a button that clears it.
    Select: defaults<SelectProps>({ allowDeselect: false }),
    Tooltip: defaults<TooltipProps>({ openDelay: 250, events: { hover: true, focus: true, touch: true } }),
  },
});
